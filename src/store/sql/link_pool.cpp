#include "store/sql/link_pool.hpp"

namespace holdfast::store::sql {

result<link_pool::loan> link_pool::borrow(boot_time deadline) {
  std::unique_lock lock{mutex_};
  if (!wait_for_room(lock, deadline)) {
    return failure{errc::unavailable, "all " + std::to_string(most_) +
                                          " connections of this session are in use; raise "
                                          "connections=, or look why the server is slow"};
  }
  ++in_use_;
  if (!idle_.empty()) {
    auto link = std::move(idle_.back());
    idle_.pop_back();
    return loan(*this, std::move(link), true);
  }
  lock.unlock();
  loan room(*this, nullptr, false);  // is given back if there is no memory for a connection
  auto made = make_(deadline);
  if (!made) return std::move(made.error());
  room.fill(std::move(*made));
  return room;
}

void link_pool::add(std::unique_ptr<row_link> link) {
  const std::lock_guard guard{mutex_};
  idle_.push_back(std::move(link));
}

bool link_pool::wait_for_room(std::unique_lock<std::mutex>& lock, boot_time deadline) {
  while (in_use_ >= most_) {
    const auto left = deadline - boot_clock::now();
    if (left <= left.zero()) return false;
    changed_.wait_for(lock, left);
  }
  return true;
}

void link_pool::give_back(std::unique_ptr<row_link> link) noexcept {
  const std::lock_guard guard{mutex_};
  --in_use_;
  const bool has_room = idle_.size() < idle_.capacity();
  if (link && has_room && link->usable()) idle_.push_back(std::move(link));
  changed_.notify_one();
}

void link_pool::drop_idle() {
  const std::lock_guard guard{mutex_};
  idle_.clear();
}

}  // namespace holdfast::store::sql
