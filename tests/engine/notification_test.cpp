#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "engine/core.hpp"
#include "harness/passing_on.hpp"
#include "stage.hpp"

// Anybody who may publish can send a notification, with what the record shows in it. It makes the
// waiter ask, and proves nothing.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::store::notice;
using holdfast::store::notice_kind;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

/// An inbox in which somebody puts notifications that the store did not send.
class forged_inbox final : public holdfast::store::inbox {
 public:
  explicit forged_inbox(holdfast::store::inbox& true_one) : true_one_(true_one) {}
  const std::string& peer() const noexcept override { return true_one_.peer(); }
  std::optional<notice> receive(holdfast::boot_time until) override {
    {
      const std::lock_guard guard{mutex_};
      if (!forged_.empty()) {
        auto first = std::move(forged_.front());
        forged_.pop_front();
        return first;
      }
    }
    return true_one_.receive(until);
  }
  void interrupt() noexcept override { true_one_.interrupt(); }
  std::optional<std::uint64_t> gaps() const noexcept override { return true_one_.gaps(); }
  void put(notice n) {
    {
      const std::lock_guard guard{mutex_};
      forged_.push_back(std::move(n));
    }
    true_one_.interrupt();
  }

 private:
  holdfast::store::inbox& true_one_;
  std::mutex mutex_;
  std::deque<notice> forged_;
};

class forgeable final : public harness::passing_on {
 public:
  forgeable(std::unique_ptr<session_store> inner, forged_inbox*& shown)
      : passing_on(std::move(inner)), inbox_(inner_->inbox()) {
    shown = &inbox_;
  }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }
  holdfast::result<permits_reply> permits(std::string_view name,
                                          const permits_command& c) override {
    return inner_->permits(name, c);
  }

 private:
  forged_inbox inbox_;
};

struct forgery {
  forgery() : session(holdfast::open("memory:", options())) {}
  ~forgery() { script->let_go(); }

  holdfast::session_options options() {
    holdfast::session_options o;
    o.clock = clock;
    holdfast::testing::fault_plan plan;
    plan.choose = [s = script](auto, auto, auto v) { return s->choose(v); };
    auto faulty = holdfast::testing::faulty(plan, clock);
    o.decorate = [this, faulty](auto inner) {
      return std::make_unique<forgeable>(faulty(std::move(inner)), inbox);
    };
    return o;
  }
  notice for_the_waiter(const std::string& name, notice_kind what) const {
    notice n;
    n.what = what;
    n.name = name;
    n.owner = session.core()->permits(name, {})->found.queue.front().owner;
    n.fence = std::uint64_t{1} << 51;
    n.expires_at = std::numeric_limits<std::int64_t>::max() / 2;
    return n;
  }
  void await_waiters(const std::string& name, std::size_t n) const {
    harness::eventually("waiters", [&] { return session.show(name).waiters.size() >= n; });
  }

  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<engine_test::script> script = std::make_shared<engine_test::script>();
  forged_inbox* inbox = nullptr;
  holdfast::session session;
};

TEST(notification, a_forged_grant_makes_the_waiter_ask_and_lets_nobody_in) {
  forgery f;
  fair_mutex m{f.session, "m"};
  const lease held = m.acquire();
  std::optional<lease> got;
  std::thread waiter([&] { got = m.try_acquire_for(10s); });
  f.await_waiters("m", 1);
  const auto asked = f.script->count(verb::acquire);
  f.inbox->put(f.for_the_waiter("m", notice_kind::granted));
  f.script->await(verb::acquire, asked + 1);
  f.clock->advance(10s);
  waiter.join();
  EXPECT_FALSE(got);
}

TEST(notification, a_forged_grant_lets_nobody_in_who_waits_without_a_thread) {
  forgery f;
  fair_mutex m{f.session, "m"};
  const lease held = m.acquire();
  auto got = async_acquire(m, 10s).future();
  f.await_waiters("m", 1);
  const auto asked = f.script->count(verb::acquire);
  f.inbox->put(f.for_the_waiter("m", notice_kind::granted));
  f.script->await(verb::acquire, asked + 1);
  harness::eventually("it gives up", [&] {
    f.clock->advance(500ms);
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_EQ(got.get().error().code, errc::timed_out);
}

TEST(notification, of_a_grant_before_any_answer_gives_no_lease) {
  forgery f;
  fair_mutex m{f.session, "m"};
  // Each request is carried out, and its answer lost.
  lease held = m.acquire();
  f.script->set(verb::acquire, fault::drop_reply);
  std::atomic<bool> over{false};
  std::optional<lease> got;
  std::thread waiter([&] {
    try {
      got = m.try_acquire_for(9s);
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), errc::unavailable);
    }
    over = true;
  });
  f.await_waiters("m", 1);
  f.script->set(verb::acquire, fault::drop_request);
  EXPECT_FALSE(held.release());  // the store grants, and says so
  harness::eventually("the end of the wait", [&] {
    f.clock->advance(500ms);
    return over.load();
  });
  waiter.join();
  EXPECT_FALSE(got);
}

TEST(notification, what_follows_a_hand_over_has_its_fence_and_end_from_the_store) {
  forgery f;
  fair_mutex m{f.session, "m"};
  lease held = m.acquire();
  lease got;
  std::thread waiter([&] { got = m.acquire(); });
  f.await_waiters("m", 1);
  f.script->hang(verb::acquire);  // the true one comes while it asks
  f.inbox->put(f.for_the_waiter("m", notice_kind::granted));
  EXPECT_FALSE(held.release());
  f.script->let_go();
  waiter.join();
  ASSERT_TRUE(got);
  const auto info = f.session.show("m");
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(got.fence(), info.holders[0].fence);
  EXPECT_GT(got.remaining(), 29s) << "and lasts its whole lease";
}

TEST(notification, a_hand_over_costs_the_release_and_the_question_of_the_next) {
  forgery f;
  fair_mutex m{f.session, "m"};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  f.await_waiters("m", 1);
  const auto before = f.script->count(verb::acquire);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_EQ(f.script->count(verb::acquire) - before, 1U);
  EXPECT_EQ(f.script->count(verb::renew), 0U);
}

TEST(notification, a_forged_opening_opens_no_latch) {
  forgery f;
  holdfast::latch gate{f.session, "l", 1};
  std::optional<bool> open;
  std::thread waiter([&] { open = gate.wait_for(10s); });
  holdfast::store::countdown_command look;
  std::vector<holdfast::store::waiter> waiting;
  harness::eventually("it waits", [&] {
    waiting = f.session.core()->countdown("l", look)->found.waiting;
    return !waiting.empty();
  });
  notice n;
  n.what = notice_kind::opened;
  n.name = "l";
  n.owner = waiting.front().owner;
  f.inbox->put(n);
  f.clock->advance(10s);
  waiter.join();
  EXPECT_EQ(open, false);
}

TEST(notification, a_forged_grant_lets_nobody_pass_a_barrier) {
  forgery f;
  holdfast::barrier b{f.session, "b", 2};
  auto arrived = b.arrive();
  std::atomic<bool> over{false};
  bool passed = false;
  std::thread waiter([&] {
    passed = b.wait_for(arrived, 10s);
    over = true;
  });
  f.script->await(verb::renew, 1);
  const auto asked = f.script->count(verb::renew);
  f.inbox->put(f.for_the_waiter("b", notice_kind::granted));
  f.script->await(verb::renew, asked + 1);
  harness::eventually("it gives up", [&] {
    f.clock->advance(500ms);
    return over.load();
  });
  waiter.join();
  EXPECT_FALSE(passed);
}

}  // namespace
