#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "primitive/thread_number.hpp"

namespace holdfast::primitive {

/// Who holds what in the std style, for locks that are taken seldom: one lease for each thread.
template <class Lease>
class by_thread {
 public:
  void put(Lease held) {
    auto mine = std::make_shared<Lease>(std::move(held));
    const std::lock_guard guard{mutex_};
    entries_.emplace_back(this_thread_number(), std::move(mine));
  }
  /// This thread's, out of the list; empty if it has none.
  Lease take() noexcept {
    const auto mine = remove();
    return mine ? std::move(*mine) : Lease{};
  }
  bool mine() const { return find() != nullptr; }
  /// What `use` says of this thread's, or of an empty one. Without our mutex: what is told of a
  /// loss may call back, and unlock.
  template <class Use>
  auto with_mine(Use use) const {
    const auto mine = find();
    const Lease none;
    return use(mine ? std::as_const(*mine) : none);
  }

 private:
  using entry = std::pair<thread_number, std::shared_ptr<Lease>>;
  static bool is_mine(const entry& e) { return e.first == this_thread_number(); }

  std::shared_ptr<Lease> find() const {
    const std::lock_guard guard{mutex_};
    const auto mine = std::find_if(entries_.begin(), entries_.end(), is_mine);
    return mine == entries_.end() ? nullptr : mine->second;
  }
  std::shared_ptr<Lease> remove() noexcept {
    const std::lock_guard guard{mutex_};
    const auto at = std::find_if(entries_.begin(), entries_.end(), is_mine);
    if (at == entries_.end()) return nullptr;
    auto mine = std::move(at->second);
    entries_.erase(at);
    return mine;
  }

  mutable std::mutex mutex_;
  std::vector<entry> entries_;
};

}  // namespace holdfast::primitive
