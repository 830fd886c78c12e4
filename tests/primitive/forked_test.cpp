#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <optional>
#include <stop_token>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/forwarding_clock.hpp"
#include "harness/held_mutexes.hpp"
#include "session/session_impl.hpp"

// What a child of fork() is told before it touches anything that a thread of its parent may have
// left locked, or counted.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;

/// What it says in a child, which waits for nobody.
errc in_a_child(const std::function<void()>& action) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    ::_exit(static_cast<int>(harness::outcome_of(action).reason));
  }
  int how = 0;
  EXPECT_EQ(::waitpid(pid, &how, 0), pid);
  EXPECT_TRUE(WIFEXITED(how));
  return static_cast<errc>(WEXITSTATUS(how));
}

TEST(a_child, has_none_of_the_tokens_that_its_parent_keeps) {
  const auto s = holdfast::open("memory:");
  holdfast::rate_limiter limiter(s, "api", {{.tokens = 50, .per = 1h}}, {.local_tokens = 50});
  ASSERT_TRUE(limiter.try_take());
  EXPECT_EQ(in_a_child([&] { (void)limiter.try_take(); }), errc::forked);
}

TEST(a_child, holds_nothing_that_a_thread_of_its_parent_had_locked) {
  const auto s = holdfast::open("memory:");
  holdfast::mutex m(s, "m");
  holdfast::recursive_mutex r(s, "r");
  holdfast::shared_mutex rw(s, "rw");
  m.lock(), r.lock(), rw.lock();
  EXPECT_EQ(in_a_child([&] { m.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)m.try_lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { r.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { rw.lock(); }), errc::forked);
  m.unlock(), r.unlock(), rw.unlock();
}

TEST(a_child, holds_none_of_several_that_a_thread_of_its_parent_had_locked) {
  const auto s = holdfast::open("memory:");
  holdfast::mutex m(s, "m");
  holdfast::multi_lock all{m};
  holdfast::redlock most{{s}, "most"};
  all.lock(), most.lock();
  EXPECT_EQ(in_a_child([&] { all.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)all.try_lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { most.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)most.try_lock(); }), errc::forked);
  all.unlock(), most.unlock();
}

TEST(a_child, is_told_so_by_the_forms_without_a_thread) {
  const auto s = holdfast::open("memory:");
  holdfast::rate_limiter limiter(s, "api", {{.tokens = 50, .per = 1h}});
  EXPECT_EQ(in_a_child([&] {
              auto told = async_take(limiter, 1).future().get();
              if (!told) holdfast::throw_failure(std::move(told.error()));
            }),
            errc::forked);
  holdfast::redlock most{{s}, "most"};
  auto held = most.acquire();
  EXPECT_EQ(in_a_child([&] { (void)async_acquire(most).future().get().value(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)async_release(std::move(held)).future().get().value(); }),
            errc::forked);
  EXPECT_FALSE(held.release());
}

/// Where a thread says so, it stands still as soon as it asks for the time with a mutex locked.
class standing_clock final : public harness::forwarding_clock {
 public:
  /// This thread, from when `now` is set.
  void may_stop_this_thread() { mine_ = true; }
  void stop_it() { armed_ = true; }
  void await_it() const {
    harness::eventually("it stands still", [&] { return stands_.load(); });
  }
  void let_go() {
    armed_ = false;
    armed_.notify_all();
  }

  holdfast::boot_time now() const noexcept override {
    if (mine_ && armed_ && harness::held_mutexes() > 0) {
      stands_ = true;
      armed_.wait(true);
    }
    return forwarding_clock::now();
  }

 private:
  static inline thread_local bool mine_ = false;
  std::atomic<bool> armed_{false};
  mutable std::atomic<bool> stands_{false};
};

/// Nothing where a sanitizer has the functions that count mutexes: there no thread stands still.
struct a_child_of_a_busy_parent : testing::Test {
  std::shared_ptr<standing_clock> clock = std::make_shared<standing_clock>();
  holdfast::session s = holdfast::open("memory:", {.clock = clock});
};

TEST_F(a_child_of_a_busy_parent, reads_without_what_a_reader_has_locked) {
  if (!harness::counts_held_mutexes()) return;
  holdfast::shared_mutex rw(s, "rw");
  auto first = rw.acquire_shared();
  clock->stop_it();
  std::thread second([&] {
    clock->may_stop_this_thread();
    (void)rw.acquire_shared();
  });
  clock->await_it();
  EXPECT_EQ(in_a_child([&] { (void)async_acquire_shared(rw).future().get().value(); }),
            errc::forked);
  clock->let_go();
  second.join();
}

TEST_F(a_child_of_a_busy_parent, looks_for_leaders_without_what_a_waiting_thread_has_locked) {
  if (!harness::counts_held_mutexes()) return;
  holdfast::election e(s, "e");
  std::stop_source stop;
  const auto wait = [&] {
    auto seen = e.observe();
    EXPECT_THROW((void)seen.next(stop.get_token()), holdfast::error);
  };
  const auto await_looks = [&, so_far = s.impl()->operations()](unsigned more) {
    harness::eventually("asked", [&] { return s.impl()->operations() >= so_far + more; });
  };
  std::thread reads(wait);  // the notifications, for both
  await_looks(2);
  std::thread waits([&] {
    clock->may_stop_this_thread();
    wait();
  });
  await_looks(3);
  clock->stop_it();
  clock->await_it();
  EXPECT_EQ(in_a_child([&] { (void)e.observe().next(); }), errc::forked);
  clock->let_go();
  stop.request_stop();
  waits.join();
  reads.join();
}

TEST(a_child, draws_no_id_while_a_thread_of_its_parent_draws_one) {
  const auto s = holdfast::open("memory:");
  holdfast::latch l(s, "l", 1);
  std::atomic<bool> over{false};
  std::thread draws([&] {
    while (!over) (void)s.impl()->new_owner();
  });
  for (int i = 0; i < 50 && !HasFailure(); ++i) {
    EXPECT_EQ(in_a_child([&] { (void)async_count_down(l).future().get().value(); }), errc::forked);
  }
  over = true;
  draws.join();
}

TEST(a_child, gives_several_up_whose_loss_is_being_told) {
  auto clock = std::make_shared<holdfast::testing::fake_clock>();
  const auto s = holdfast::open("memory:", {.clock = clock});
  holdfast::mutex one(s, "one"), other(s, "other");
  holdfast::multi_lock all({one, other});
  std::optional<holdfast::multi_lease> held = all.acquire(30s);
  std::atomic<bool> told{false}, goes_on{false};
  const std::stop_callback on_loss(held->lost(), [&] {
    told = true;
    goes_on.wait(false);
  });
  clock->advance(31s);
  harness::eventually("it is told", [&] { return told.load(); });
  EXPECT_EQ(in_a_child([&] {
              const auto how = held->release();
              holdfast::throw_failure({static_cast<errc>(how.value()), {}});
            }),
            errc::forked);
  goes_on = true;
  goes_on.notify_all();
  EXPECT_EQ(held->release(), errc::lost);
}

}  // namespace
