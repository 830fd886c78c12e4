#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/next_wake.hpp"

// A call that does not wait and finds the lock held reports that by an event of its own: a wait
// that timed out is something else.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::mutex;
using holdfast::one_try;
using holdfast::wait_limit;

/// The events, and the kinds of lock.
class listener final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    if (e.kind == event_kind::paused) return;  // the machine's
    const std::lock_guard guard{mutex_};
    told_.push_back({e.kind, std::string(e.lock_kind), e.code});
    words_ = e.detail;
  }
  struct one {
    event_kind kind;
    std::string lock_kind;
    std::error_code code;
    bool operator==(const one&) const = default;
  };
  std::vector<one> take() {
    const std::lock_guard guard{mutex_};
    return std::exchange(told_, {});
  }

  /// The text of the last event.
  std::string words() {
    const std::lock_guard guard{mutex_};
    return words_;
  }

 private:
  std::mutex mutex_;
  std::vector<one> told_;
  std::string words_;
};

using told = std::vector<listener::one>;

/// Attempts of a session whose lock another session holds.
class busy : public testing::Test {
 protected:
  using attempt = std::function<void(holdfast::wait_time)>;

  /// What `call` does in a thread, while time passes only when all threads sleep: so each wait has
  /// asked before its deadline.
  void while_time_passes(const std::function<void()>& call) {
    auto over = harness::concurrently(call);
    harness::eventually("its end", [&] {
      harness::pass(*clock_, 1ms);
      return over.wait_for(0s) == std::future_status::ready;
    });
    over.get();
  }

  /// A try reports that it found the lock held, and a short wait that it timed out: a try has no
  /// deadline.
  void expect_told_apart(const std::string& kind, const attempt& acquire) {
    seen_->take();
    acquire(one_try);
    EXPECT_EQ(seen_->take(), (told{{event_kind::busy, kind, errc::busy}})) << kind;
    EXPECT_EQ(seen_->words(), "still held by another holder") << kind;
    while_time_passes([&] { acquire(2ms); });
    EXPECT_EQ(seen_->take(), (told{{event_kind::gave_up, kind, errc::timed_out}})) << kind;
    EXPECT_EQ(seen_->words(), "still held by another holder at the deadline") << kind;
  }

  /// With the same code.
  template <class Pending>
  static void ends_in_vain(Pending p, holdfast::wait_time wait) {
    const auto how = std::move(p).future().get();
    ASSERT_FALSE(how);
    EXPECT_EQ(how.error().code, wait > one_try ? errc::timed_out : errc::busy);
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<listener> seen_ = std::make_shared<listener>();
  const holdfast::session theirs_ = holdfast::open("memory:busy", {.clock = clock_});
  const holdfast::session ours_ =
      holdfast::open("memory:busy", {.observer = seen_, .clock = clock_});
};

TEST_F(busy, a_mutex_in_each_of_its_forms) {
  mutex other{theirs_, "m"};
  const auto held = other.acquire();
  mutex m{ours_, "m"};
  holdfast::fair_mutex fair{ours_, "m"};
  holdfast::recursive_mutex again{ours_, "m"};
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(m.try_acquire_for(wait)); });
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(m.try_lock_for(wait)); });
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(fair.try_acquire_for(wait)); });
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(again.try_lock_for(wait)); });
  expect_told_apart("mutex",
                    [&](auto wait) { ends_in_vain(async_acquire(m, wait_limit(wait)), wait); });
  EXPECT_FALSE(m.try_lock());
  EXPECT_EQ(seen_->take(), (told{{event_kind::busy, "mutex", errc::busy}}));
}

TEST_F(busy, a_mutex_that_another_thread_of_this_process_holds) {
  mutex m{ours_, "local"};
  const auto held = m.acquire();
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(m.try_acquire_for(wait)); });
  expect_told_apart("mutex",
                    [&](auto wait) { ends_in_vain(async_acquire(m, wait_limit(wait)), wait); });
}

TEST_F(busy, both_sides_of_a_shared_mutex) {
  holdfast::shared_mutex other{theirs_, "rw"};
  const auto held = other.acquire();
  holdfast::shared_mutex m{ours_, "rw"};
  const std::string kind = "shared_mutex";
  expect_told_apart(kind, [&](auto wait) { EXPECT_FALSE(m.try_acquire_for(wait)); });
  expect_told_apart(kind, [&](auto wait) { EXPECT_FALSE(m.try_acquire_shared_for(wait)); });
  expect_told_apart(kind, [&](auto wait) { EXPECT_FALSE(m.try_lock_for(wait)); });
  expect_told_apart(kind, [&](auto wait) { EXPECT_FALSE(m.try_lock_shared_for(wait)); });
  expect_told_apart(kind,
                    [&](auto wait) { ends_in_vain(async_acquire(m, wait_limit(wait)), wait); });
  expect_told_apart(
      kind, [&](auto wait) { ends_in_vain(async_acquire_shared(m, wait_limit(wait)), wait); });
}

TEST_F(busy, semaphores_of_each_kind) {
  holdfast::semaphore other{theirs_, "s", 1};
  const auto held = other.acquire();
  holdfast::semaphore s{ours_, "s", 1};
  holdfast::counting_semaphore counts{ours_, "s", 1};
  expect_told_apart("semaphore", [&](auto wait) { EXPECT_FALSE(s.try_acquire_for(wait)); });
  expect_told_apart("semaphore", [&](auto wait) { EXPECT_FALSE(counts.try_acquire_for(wait)); });
  expect_told_apart("semaphore",
                    [&](auto wait) { ends_in_vain(async_acquire(s, 1, wait_limit(wait)), wait); });

  holdfast::expiring_semaphore others{theirs_, "e", 1};
  const auto permit = others.acquire(1min);
  holdfast::expiring_semaphore e{ours_, "e", 1};
  expect_told_apart("semaphore", [&](auto wait) { EXPECT_FALSE(e.try_acquire_for(1min, wait)); });
  expect_told_apart("semaphore", [&](auto wait) {
    ends_in_vain(async_acquire(e, 1min, wait_limit(wait)), wait);
  });
}

TEST_F(busy, an_election_that_another_leads) {
  holdfast::election other{theirs_, "elect"};
  const auto leads = other.campaign();
  holdfast::election e{ours_, "elect"};
  expect_told_apart("election", [&](auto wait) { EXPECT_FALSE(e.campaign_for(wait)); });
  expect_told_apart("election",
                    [&](auto wait) { ends_in_vain(async_campaign(e, wait_limit(wait)), wait); });
}

TEST_F(busy, several_locks_at_once) {
  mutex other{theirs_, "b"};
  const auto held = other.acquire();
  mutex a{ours_, "a"}, b{ours_, "b"};
  holdfast::multi_lock all{a, b};
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(all.try_acquire_for(wait)); });
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(all.try_lock_for(wait)); });
  expect_told_apart("mutex",
                    [&](auto wait) { ends_in_vain(async_acquire(all, wait_limit(wait)), wait); });
}

TEST_F(busy, an_admission_without_a_permit) {
  holdfast::semaphore other{theirs_, "room", 1};
  const auto held = other.acquire();
  holdfast::semaphore room{ours_, "room", 1};
  holdfast::rate_limiter rate{ours_, "rate", {{.tokens = 5, .per = 1min}}};
  holdfast::admission door{rate, room};
  const auto refused = [](const holdfast::admitted& a) { return !a; };
  expect_told_apart("semaphore", [&](auto wait) { EXPECT_TRUE(refused(door.admit_for(wait))); });
  expect_told_apart("semaphore", [&](auto wait) {
    EXPECT_TRUE(refused(async_admit(door, 1, {}, wait_limit(wait)).future().get().value()));
  });
}

TEST_F(busy, an_admission_without_tokens) {
  holdfast::semaphore room{ours_, "free", 1};
  holdfast::rate_limiter rate{ours_, "spent", {{.tokens = 1, .per = 1min}}};
  holdfast::admission door{rate, room};
  ASSERT_TRUE(door.try_admit());
  const auto expect_told = [&](const auto& admit) {
    seen_->take();
    EXPECT_FALSE(admit(one_try));
    EXPECT_EQ(seen_->take(), (told{{event_kind::busy, "semaphore", errc::busy}}));
    EXPECT_EQ(seen_->words(), "there are not enough tokens");
    while_time_passes([&] { EXPECT_FALSE(admit(2ms)); });
    EXPECT_EQ(seen_->take(), (told{{event_kind::gave_up, "semaphore", errc::timed_out}}));
    EXPECT_EQ(seen_->words(), "the tokens would have come after the deadline");
  };
  expect_told([&](holdfast::wait_time wait) { return bool(door.admit_for(wait)); });
  expect_told([&](holdfast::wait_time wait) {
    return bool(async_admit(door, 1, {}, wait_limit(wait)).future().get().value());
  });
}

TEST_F(busy, a_redlock_that_a_majority_refuses) {
  const auto open = [&](const char* url, std::shared_ptr<listener> seen = {}) {
    return holdfast::open(url, {.observer = std::move(seen), .clock = clock_});
  };
  const std::vector nodes{open("memory:busy-1", seen_), open("memory:busy-2"),
                          open("memory:busy-3")};
  const std::vector others{open("memory:busy-1"), open("memory:busy-2"), open("memory:busy-3")};
  holdfast::redlock other{others, "q"};
  const auto held = other.acquire();
  holdfast::redlock q{nodes, "q"};
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(q.try_acquire_for(wait)); });
  expect_told_apart("mutex", [&](auto wait) { EXPECT_FALSE(q.try_lock_for(wait)); });
  expect_told_apart("mutex",
                    [&](auto wait) { ends_in_vain(async_acquire(q, wait_limit(wait)), wait); });
}

TEST_F(busy, a_cancelled_wait_is_reported_as_cancelled) {
  mutex other{theirs_, "stop"};
  const auto held = other.acquire();
  mutex m{ours_, "stop"};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(m.try_acquire_for(1min, stop.get_token()));
  EXPECT_EQ(seen_->take(), (told{{event_kind::gave_up, "mutex", errc::cancelled}}));
}

}  // namespace
