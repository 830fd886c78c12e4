#include "store/sql/lock_links.hpp"

namespace holdfast::store::sql {

status lock_links::replace_home() {
  auto made = connect_();
  if (!made) return std::move(made.error());
  home_ = std::move(*made);
  return done{};
}

std::unique_ptr<lock_link> lock_links::take_spare(std::size_t taken) {
  forget_what_broke();
  if (!spare_.empty()) {
    auto last = std::move(spare_.back());
    spare_.pop_back();
    if (last->ping()) return last;
    spare_.clear();  // one of them turned out to be dead, so all may be
  }
  if (1 + taken >= most_ || clock_.now() < none_until_) return nullptr;
  auto made = connect_();
  if (made) return std::move(*made);
  none_until_ = saturated_add(clock_.now(), std::chrono::seconds(1));
  return nullptr;
}

void lock_links::give_back(std::unique_ptr<lock_link> one) {
  if (one && one->usable()) spare_.push_back(std::move(one));
}

void lock_links::forget_what_broke() {
  std::erase_if(spare_, [](const auto& link) { return !link->usable(); });
}

}  // namespace holdfast::store::sql
