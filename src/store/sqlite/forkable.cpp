#include "store/sqlite/forkable.hpp"

#include <pthread.h>

#include <atomic>
#include <utility>

namespace holdfast::store::sqlite {

/// All objects of this process, including inherited ones: those are never removed, so they stay
/// reachable.
struct fork_registry {
  std::mutex mutex;
  forkable* first = nullptr;
  std::atomic<unsigned> generation{0};

  fork_registry() { ::pthread_atfork(&before, &in_parent, &in_child); }

  static fork_registry& get() {
    static auto* const registry = new fork_registry;  // lives longer than any static session
    return *registry;
  }

  template <class Function>
  void for_each(const Function& call) {
    for (forkable* each = first; each != nullptr; each = each->next_) call(*each);
  }

  // The objects of a grandparent process have no user left, so no thread holds their mutex.
  static void before() noexcept {
    get().mutex.lock();
    get().for_each([](forkable& each) { each.mutex_.lock(); });
  }
  static void unlock_all() noexcept {
    get().for_each([](forkable& each) { each.mutex_.unlock(); });
    get().mutex.unlock();
  }
  static void in_parent() noexcept { unlock_all(); }
  static void in_child() noexcept {
    get().generation.fetch_add(1, std::memory_order_relaxed);
    unlock_all();
  }

  void add(forkable& one) {
    const std::lock_guard lock{mutex};
    one.next_ = std::exchange(first, &one);
  }
  void remove(forkable& one) {
    const std::lock_guard lock{mutex};
    forkable** at = &first;
    while (*at != nullptr && *at != &one) at = &(*at)->next_;
    if (*at != nullptr) *at = one.next_;
  }
  void abandon_inherited() {
    const std::lock_guard lock{mutex};
    for_each([](forkable& each) {
      if (each.forked() && !std::exchange(each.abandoned_, true)) each.abandon();
    });
  }
};

forkable::forkable() : made_in_(fork_registry::get().generation.load(std::memory_order_relaxed)) {
  fork_registry::get().add(*this);
}

forkable::~forkable() { fork_registry::get().remove(*this); }

bool forkable::forked() const noexcept {
  return made_in_ != fork_registry::get().generation.load(std::memory_order_relaxed);
}

void abandon_what_was_inherited() noexcept { fork_registry::get().abandon_inherited(); }

}  // namespace holdfast::store::sqlite
