#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>

#include "engine/stage.hpp"

// The n-th allocation of the calling thread fails, for n = 1, 2, … until none is left to fail: in
// each case an error with a text, nothing that ends the program, and a lock that can be had again
// when a lease is over at the latest. The lane of the sanitizers sees that nothing leaks.
namespace {

/// How many allocations of this thread succeed before one fails; negative: all.
thread_local long succeed = -1;
thread_local bool failed = false;

}  // namespace

void* operator new(std::size_t size) {
  if (succeed >= 0 && succeed-- == 0) {
    failed = true;
    throw std::bad_alloc();
  }
  if (void* const p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace engine_test;
using holdfast::lease;

class no_memory_after {
 public:
  explicit no_memory_after(long allocations) { succeed = allocations, failed = false; }
  ~no_memory_after() { succeed = -1; }
  no_memory_after(const no_memory_after&) = delete;
  no_memory_after& operator=(const no_memory_after&) = delete;
};

/// Calls `attempt` with no memory after 0, 1, 2, … allocations, and `afterwards` behind each, until
/// one had enough. Says how many had not.
int with_ever_more_memory(const std::function<void()>& attempt,
                          const std::function<void()>& afterwards) {
  for (int n = 0;; ++n) {
    try {
      const no_memory_after now(n);
      attempt();
    } catch (const holdfast::error& e) {
      EXPECT_STRNE(e.what(), "") << n;
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(failed);
    }
    const bool enough = !failed;
    afterwards();
    if (enough) return n;
  }
}

struct exhaustion : testing::Test {
  stage s;
  holdfast::mutex m{s.session, "m"};
  holdfast::fair_mutex f{s.session, "f"};
  holdfast::semaphore sem{s.session, "sem", 2};

  /// Nobody has anything, when a lease is over at the latest.
  void all_free() {
    harness::eventually("all is free", [&] {
      s.clock->advance(1s);
      for (const auto* const name : {"m", "f", "sem"}) {
        const auto info = s.session.show(name);
        if (!info.holders.empty() || !info.waiters.empty()) return false;
      }
      return true;
    });
    EXPECT_TRUE(m.try_acquire());
    EXPECT_TRUE(f.try_acquire());
    EXPECT_TRUE(sem.try_acquire(2));
  }
};

TEST_F(exhaustion, while_a_store_is_opened_leaves_nothing) {
  const auto failures =
      with_ever_more_memory([] { (void)holdfast::open("memory:exhausted"); }, [] {});
  EXPECT_GT(failures, 0);
}

TEST_F(exhaustion, while_a_lock_object_is_made_leaves_nothing) {
  const auto failures = with_ever_more_memory([&] { const holdfast::mutex made(s.session, "m"); },
                                              [&] { all_free(); });
  EXPECT_GT(failures, 0);
}

TEST_F(exhaustion, while_something_is_acquired_leaves_nothing) {
  for (const auto& take : std::vector<std::function<void()>>{
           [&] { (void)m.try_acquire(); }, [&] { (void)f.try_acquire(); },
           [&] { (void)sem.try_acquire(2); }, [&] { (void)m.try_acquire_for(1h); }}) {
    EXPECT_GT(with_ever_more_memory(take, [&] { all_free(); }), 0);
  }
}

TEST_F(exhaustion, while_a_thread_form_is_used_leaves_nothing) {
  const auto failures = with_ever_more_memory(
      [&] {
        if (m.try_lock()) m.unlock();
      },
      [&] { all_free(); });
  EXPECT_GT(failures, 0);
}

TEST_F(exhaustion, while_it_waits_for_what_another_has_leaves_nothing) {
  const auto failures = with_ever_more_memory(
      [&] {
        lease theirs;
        {
          const long left = std::exchange(succeed, -1);
          theirs = f.acquire();
          succeed = left;
        }
        (void)f.try_acquire();
      },
      [&] { all_free(); });
  EXPECT_GT(failures, 0);
}

TEST_F(exhaustion, while_a_lease_is_extended_changes_nothing_for_the_next) {
  lease held = m.acquire();
  const auto failures = with_ever_more_memory([&] { held.extend(); }, [&] { held.check(); });
  EXPECT_GE(failures, 0);
  EXPECT_FALSE(held.release());
  all_free();
}

TEST_F(exhaustion, while_it_is_given_back_keeps_it_for_a_lease_at_most) {
  for (const auto& take :
       std::vector<std::function<lease()>>{[&] { return m.acquire(); }, [&] { return f.acquire(); },
                                           [&] { return sem.acquire(2); }}) {
    lease held;
    (void)with_ever_more_memory(
        [&] {
          const long left = std::exchange(succeed, -1);
          held = take();
          succeed = left;
          (void)held.release();
        },
        [&] { all_free(); });
  }
}

TEST_F(exhaustion, while_something_begins_without_a_thread_is_told_or_thrown) {
  for (const auto& begin : std::vector<std::function<void()>>{
           [&] { (void)async_acquire(m).future().get(); },
           [&] { (void)async_acquire(sem, 2).future().get(); },
           [&] { (void)async_release(m.acquire()).future().get(); }}) {
    (void)with_ever_more_memory(begin, [&] { all_free(); });
  }
}

}  // namespace
