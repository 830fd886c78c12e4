#pragma once

#include <algorithm>
#include <atomic>
#include <holdfast/error.hpp>
#include <holdfast/timed.hpp>
#include <iterator>
#include <list>
#include <mutex>
#include <utility>

#include "primitive/thread_number.hpp"
#include "session/forks.hpp"

namespace holdfast::primitive {

/// The std forms belong to threads: only the thread that locked can unlock, and it never releases
/// another thread's hold. In a child of fork() only the hold that a thread has without a mutex
/// still exists.
template <class Lease>
class by_thread {
  struct entry {
    thread_number thread = no_thread;
    Lease held{};
  };
  using entries = std::list<entry>;

 public:
  /// Memory for a lease to come, so that storing the lease takes none.
  class place {
   public:
    place() : one_(1) {}

   private:
    friend by_thread;
    entries one_;
  };

  void put(Lease held) {
    if (!put_first(held)) put_in(place(), std::move(held));
  }
  void put(place at, Lease held) noexcept {
    if (!put_first(held)) put_in(std::move(at), std::move(held));
  }

  /// Removes and returns this thread's latest lease; empty if it has none.
  Lease take() noexcept {
    if (has_list()) {
      const std::lock_guard guard{mutex_};
      if (const auto mine = latest(); mine != entries_.rend()) {
        Lease held = std::move(mine->held);
        entries_.erase(std::next(mine).base());
        more_.store(entries_.size(), std::memory_order_relaxed);
        return held;
      }
    }
    if (!has_first()) return {};
    Lease held = std::move(first_);
    first_thread_.store(no_thread, std::memory_order_release);
    return held;
  }

  bool mine() const noexcept { return find() != nullptr; }

  /// This thread's latest lease; null if it has none. The lease stays where it is: only this thread
  /// can remove it.
  Lease* find() const noexcept {
    if (has_list()) {
      const std::lock_guard guard{mutex_};
      if (const auto mine = latest(); mine != entries_.rend()) return &mine->held;
    }
    return has_first() ? &first_ : nullptr;
  }

  /// Calls `use` with this thread's lease, or with an empty one.
  template <class Use>
  auto with_mine(Use use) const {
    const Lease* const mine = find();
    const Lease none;
    return use(mine != nullptr ? *mine : none);
  }

 private:
  /// Uses the first entry, if it is free.
  bool put_first(Lease& held) noexcept {
    thread_number nobody = no_thread;
    if (more_.load(std::memory_order_relaxed) > 0 ||
        !first_thread_.compare_exchange_strong(nobody, this_thread_number(),
                                               std::memory_order_acquire)) {
      return false;
    }
    first_ = std::move(held);
    return true;
  }
  void put_in(place at, Lease held) noexcept {
    entry& mine = at.one_.front();
    mine.thread = this_thread_number();
    mine.held = std::move(held);
    const std::lock_guard guard{mutex_};
    entries_.splice(entries_.end(), at.one_);
    more_.store(entries_.size(), std::memory_order_relaxed);
  }
  bool has_list() const noexcept {
    return more_.load(std::memory_order_relaxed) > 0 && !maker_.forked();
  }
  bool has_first() const noexcept {
    return first_thread_.load(std::memory_order_relaxed) == this_thread_number();
  }
  auto latest() const noexcept {
    return std::find_if(entries_.rbegin(), entries_.rend(),
                        [me = this_thread_number()](const entry& e) { return e.thread == me; });
  }

  const engine::maker maker_;
  // A mutex has one holder, which uses this entry and needs no list.
  std::atomic<thread_number> first_thread_{no_thread};
  mutable Lease first_;
  std::atomic<std::size_t> more_{0};
  mutable std::mutex mutex_;
  mutable entries entries_;
};

/// lock() in the std style; `acquire` returns the lease. A thread does not wait for a lock that it
/// holds itself: without a time limit that throws errc::deadlock. Returns false if the lock was not
/// acquired in time. `other`: the holds of another mode of the same lock.
template <class Holds, class Of, class Acquire>
bool lock_for_thread(Holds& holds, const Of& of, wait_time wait, const char* if_held,
                     Acquire acquire, const Holds* other = nullptr) {
  of.require_usable();
  if (holds.mine() || (other != nullptr && other->mine())) {
    if (wait != no_limit) return false;
    of.fail({errc::deadlock, if_held});
  }
  auto got = acquire();
  if (got) holds.put(std::move(*got));
  return got.has_value();
}

}  // namespace holdfast::primitive
