#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
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

// The errors in a child of fork(), before the child touches anything that a thread of its parent
// may have left locked, or counted.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;

/// The error of `action` in a child, which waits for nobody.
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

TEST(a_child, has_no_tokens_of_its_parent) {
  const auto s = holdfast::open("memory:");
  holdfast::rate_limiter limiter(s, "api", {{.tokens = 50, .per = 1h}}, {.local_tokens = 50});
  ASSERT_TRUE(limiter.try_take());
  EXPECT_EQ(in_a_child([&] { (void)limiter.try_take(); }), errc::forked);
}

TEST(a_child, holds_no_lock_of_a_thread_of_its_parent) {
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

TEST(a_child, holds_no_member_of_a_multi_lock_of_its_parent) {
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

TEST(a_child, is_told_which_release_is_refused) {
  const auto s = holdfast::open("memory:");
  holdfast::mutex a(s, "a"), b(s, "b");
  holdfast::multi_lock all{a, b};
  holdfast::redlock most{{s}, "most"};
  auto mine = most.acquire();
  auto both = all.acquire();
  const auto judge = [](auto& held, std::string_view name) {
    const auto how = release_status(held);
    if (how || how.error().name != name || how.error().operation != "release") return;
    holdfast::throw_failure(how.error());
  };
  EXPECT_EQ(in_a_child([&] { judge(mine, "most"); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { judge(both, "a"); }), errc::forked);
}

TEST(a_child, gets_an_error_from_the_forms_without_a_thread) {
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

/// A thread that opts in stops as soon as it asks for the time with a mutex locked.
class standing_clock final : public harness::forwarding_clock {
 public:
  /// Opts this thread in; it may stop after stop_it().
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

/// The tests return at once where a sanitizer has the functions that count mutexes: there no thread
/// stops.
struct a_child_of_a_busy_parent : testing::Test {
  std::shared_ptr<standing_clock> clock = std::make_shared<standing_clock>();
  holdfast::session s = holdfast::open("memory:", {.clock = clock});
};

TEST_F(a_child_of_a_busy_parent, reads_without_the_mutex_of_another_reader) {
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

TEST_F(a_child_of_a_busy_parent, leaves_nothing_to_the_keeper_of_its_parent) {
  if (!harness::counts_held_mutexes()) return;
  const auto abandon = [&] { s.impl()->keeper().abandon("n", {7, 7}, 1s); };
  clock->stop_it();
  std::thread parents([&] {
    clock->may_stop_this_thread();
    abandon();
  });
  clock->await_it();
  EXPECT_EQ(in_a_child(abandon), errc{});
  clock->let_go();
  parents.join();
}

TEST_F(a_child_of_a_busy_parent, queries_leaders_without_the_mutex_of_a_waiting_thread) {
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

/// Many children, each forked while a thread of the parent repeats an action: some are forked while
/// it has a mutex locked.
void expect_of_each_child(errc reason, const std::function<void()>& action,
                          const std::function<void()>& meanwhile) {
  std::atomic<bool> over{false};
  std::thread parents([&] {
    while (!over) meanwhile();
  });
  for (int i = 0; i < 50 && !testing::Test::HasFailure(); ++i) {
    EXPECT_EQ(in_a_child(action), reason);
  }
  over = true;
  parents.join();
}

TEST(a_child, draws_no_id_while_a_thread_of_its_parent_draws_one) {
  const auto s = holdfast::open("memory:");
  holdfast::latch l(s, "l", 1);
  expect_of_each_child(
      errc::forked, [&] { (void)async_count_down(l).future().get().value(); },
      [&] { (void)s.impl()->new_owner(); });
}

/// The reads of threads after the first one are kept in a list, which has a mutex.
struct a_child_of_a_reader : testing::Test {
  holdfast::session s = holdfast::open("memory:");
  holdfast::shared_mutex rw{s, "rw"};
  const std::function<void()> looks = [this] { (void)rw.fence(); };

  void SetUp() override {
    std::thread([this] { rw.lock_shared(); }).join();
    rw.lock_shared();
  }
  void TearDown() override { rw.unlock_shared(); }
};

TEST_F(a_child_of_a_reader, unlocks_while_a_thread_of_its_parent_searches_its_hold) {
  expect_of_each_child({}, [&] { rw.unlock_shared(); }, looks);
}

TEST_F(a_child_of_a_reader, checks_while_a_thread_of_its_parent_searches_its_hold) {
  expect_of_each_child(errc::forked, [&] { rw.check(); }, looks);
}

TEST(a_child, unlocks_a_recursive_mutex_while_a_thread_of_its_parent_asks_for_its_level) {
  const auto s = holdfast::open("memory:");
  holdfast::recursive_mutex m(s, "m");
  m.lock();
  const auto looks = [&] { (void)m.level(); };
  expect_of_each_child({}, [&] { m.unlock(); }, looks);
  const auto has_levels = [&] {
    if (m.level() != 0) holdfast::throw_failure({errc::deadlock, "it has levels"});
  };
  expect_of_each_child({}, has_levels, looks);
  m.unlock();
}

TEST(a_child, releases_no_permit_while_a_thread_of_its_parent_does) {
  const auto s = holdfast::open("memory:");
  holdfast::counting_semaphore permits(s, "permits", 2);
  permits.acquire();
  expect_of_each_child(errc::forked, [&] { permits.release(); }, [&] { permits.release(0); });
  permits.release();
}

TEST(a_child, has_no_votes_while_a_thread_of_its_parent_reads_them) {
  const auto s = holdfast::open("memory:");
  holdfast::redlock most({s}, "most");
  const auto held = most.acquire();
  expect_of_each_child(
      errc::forked, [&] { (void)most.last_votes(); }, [&] { (void)most.last_votes(); });
  expect_of_each_child(errc::forked, [&] { (void)held.votes(); }, [&] { (void)held.votes(); });
}

TEST(a_child, makes_no_lock_of_its_parents_session_while_a_thread_of_its_parent_does) {
  const auto s = holdfast::open("memory:");
  const auto make = [&] { const holdfast::mutex m(s, "m"); };
  expect_of_each_child(errc::forked, make, make);
}

std::ptrdiff_t threads() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

TEST(a_child, refunds_no_tokens_through_the_session_of_its_parent) {
  const auto s = holdfast::open("memory:");
  const holdfast::store::bucket_choice one{"all"};
  const holdfast::store::rate_command take{
      .owner = s.impl()->new_owner(), .tokens = 1, .buckets = {&one, 1}};
  EXPECT_EQ(in_a_child([&] {
              const auto before = threads();
              s.impl()->refund("api", take);
              if (threads() != before) ::_exit(77);
            }),
            errc{});
}

TEST(a_child, changes_no_rules_while_a_thread_of_its_parent_reads_them) {
  const auto s = holdfast::open("memory:");
  const std::vector<holdfast::rate_rule> rules{{.tokens = 50, .per = 1h}};
  holdfast::rate_limiter limiter(s, "api", rules);
  expect_of_each_child(
      errc::forked, [&] { limiter.change_rules(rules, 1); }, [&] { (void)limiter.peek(); });
}

TEST(a_child, takes_no_tokens_without_a_thread_and_gets_an_error_at_the_end) {
  const auto s = holdfast::open("memory:");
  holdfast::rate_limiter limiter(s, "api", {{.tokens = 50, .per = 1h}});
  holdfast::semaphore permits(s, "permits", 1);
  holdfast::admission door(limiter, permits);
  const auto taken = limiter.try_take();
  const auto expect_told = [](auto begin) {
    EXPECT_EQ(in_a_child([&] {
                auto begun = begin();
                auto told = std::move(begun).future().get();
                if (!told && told.error().code == errc::forked) ::_exit(77);
              }),
              static_cast<errc>(77));
  };
  expect_told([&] { return async_take(limiter, 1); });
  expect_told([&] { return async_reserve(limiter, 1, 1s); });
  expect_told([&] { return async_refund(limiter, 1); });
  expect_told([&] { return async_refund(limiter, taken); });
  expect_told([&] { return async_peek(limiter); });
  expect_told([&] { return async_admit(door); });
}

TEST(a_child, has_lost_a_lease_that_a_thread_of_its_parent_checks) {
  const auto s = holdfast::open("memory:");
  holdfast::mutex m(s, "m");
  const auto held = m.acquire();
  bool told = false;
  const std::stop_callback on_loss(held.lost(), [&] { told = true; });
  expect_of_each_child(
      errc::forked,
      [&] {
        const bool lost = held.lost().stop_requested();
        if (lost && !told) held.check();
      },
      [&] { (void)held.lost(); });
}

TEST(a_child, learns_that_a_majority_and_several_locks_belong_to_its_parent) {
  const auto s = holdfast::open("memory:");
  holdfast::redlock most({s}, "most");
  holdfast::mutex m(s, "m");
  holdfast::multi_lock all{m};
  most.lock(), all.lock();
  const auto held = holdfast::redlock({s}, "other").acquire();
  bool told = false;
  const std::stop_callback on_loss(held.lost(), [&] { told = true; });
  EXPECT_EQ(in_a_child([&] {
              if (held.lost().stop_requested() && !told) held.check();
            }),
            errc::forked);
  EXPECT_EQ(in_a_child([&] {
              if (all.lost().stop_requested()) all.check();
            }),
            errc::forked);
  EXPECT_EQ(in_a_child([&] { most.check(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { all.check(); }), errc::forked);
  most.unlock(), all.unlock();
}

TEST(a_child, releases_several_locks_whose_loss_is_being_reported) {
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
