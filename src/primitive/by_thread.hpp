#pragma once

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::primitive {

/// Who holds what in the std style, for locks that are taken seldom: one lease for each thread.
template <class Lease>
class by_thread {
 public:
  void put(Lease held) {
    const std::lock_guard guard{mutex_};
    entries_.emplace_back(std::this_thread::get_id(), std::move(held));
  }
  /// This thread's, out of the list; empty if it has none.
  Lease take() noexcept {
    const std::lock_guard guard{mutex_};
    const auto mine = find();
    if (mine == entries_.end()) return {};
    Lease held = std::move(mine->second);
    entries_.erase(mine);
    return held;
  }
  bool mine() {
    const std::lock_guard guard{mutex_};
    return find() != entries_.end();
  }
  /// What `use` says of this thread's, or of an empty one.
  template <class Use>
  auto with_mine(Use use) {
    const std::lock_guard guard{mutex_};
    const auto mine = find();
    const Lease none;
    return use(mine == entries_.end() ? none : mine->second);
  }

 private:
  auto find() {
    return std::find_if(entries_.begin(), entries_.end(),
                        [](const auto& e) { return e.first == std::this_thread::get_id(); });
  }
  std::mutex mutex_;
  std::vector<std::pair<std::thread::id, Lease>> entries_;
};

}  // namespace holdfast::primitive
