#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "harness/passing_on.hpp"
#include "harness/whole_waits.hpp"
#include "stage.hpp"
#include "waiting_room.hpp"

// A renewal that is on its way when something else happens to its lease.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::lease;
using holdfast::mutex;
using verb = holdfast::store::permits_verb;

TEST(renewal, that_returns_after_the_release_is_ignored) {
  stage s;
  lease held = mutex(s.session, "m").acquire();
  const lease next = mutex(s.session, "n", {.lease = 33s}).acquire();
  s.script->hang(verb::renew);
  s.clock->advance(10s);
  s.script->await(verb::renew, 1);
  EXPECT_FALSE(held.release());
  s.script->let_go();
  s.clock->advance(1s);
  harness::eventually("the same thread has gone on", [&] { return next.remaining() > 32s; });
  EXPECT_EQ(s.seen->count(event_kind::lost), 0U);
}

TEST(renewal, follows_an_extension_that_failed) {
  stage s;
  lease held = mutex(s.session, "m").acquire();
  s.script->set(verb::renew, holdfast::testing::fault::drop_request);
  EXPECT_THROW(held.extend(), holdfast::error);
  EXPECT_EQ(s.seen->count(event_kind::suspect), 1U);
  s.script->set(verb::renew, holdfast::testing::fault::none);
  s.clock->advance(1s);
  s.seen->await(event_kind::held_again);
}

TEST(renewal, of_a_short_lease_comes_in_time_beside_a_long_one) {
  const auto clock = std::make_shared<harness::whole_waits>();
  const auto seen = std::make_shared<recorder>();
  holdfast::session_options o;
  o.clock = clock;
  o.observer = seen;
  auto session = holdfast::open("memory:", o);
  const lease longer = mutex(session, "long", {.lease = 1h}).acquire();
  harness::eventually("it sleeps until the long one is due", [&] { return clock->asleep.load(); });
  const lease shorter = mutex(session, "short", {.lease = 300ms, .max_hold = 600ms}).acquire();
  seen->await(event_kind::lost);  // its end is noticed at all
}

/// Acts between an arrival that replaces another one and the answer to it.
class meanwhile final : public harness::passing_on {
 public:
  using deed = std::function<void()>;
  meanwhile(std::unique_ptr<session_store> inner, std::shared_ptr<deed> what)
      : passing_on(std::move(inner)), what_(std::move(what)) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = inner_->permits(name, c);
    if (c.verb == verb::acquire && c.replaces && *what_) (*what_)();
    return reply;
  }

 private:
  const std::shared_ptr<deed> what_;
};

struct arrivals : stage {
  arrivals() {
    auto o = options();
    o.decorate = [inner = o.decorate, what = replaced](auto store) {
      return std::make_unique<meanwhile>(inner(std::move(store)), what);
    };
    session = holdfast::open("memory:", o);
  }
  std::shared_ptr<meanwhile::deed> replaced = std::make_shared<meanwhile::deed>();
};

TEST(renewal, of_an_entry_that_an_arrival_replaced_reports_no_loss) {
  arrivals s;
  holdfast::barrier alone{s.session, "b", 1};
  alone.arrive_and_wait();
  const lease beside = mutex(s.session, "n", {.lease = 33s}).acquire();
  // Each renewal of a batch is settled before anything is reported, and that before the next batch.
  const auto renewed = [&] {
    harness::eventually("renewed", [&] { return beside.remaining() > 32s; });
  };
  s.script->hang(verb::renew);
  s.clock->advance(11s);
  s.script->await(verb::renew, 1);
  *s.replaced = [&] {
    s.script->let_go();
    renewed();
    s.clock->advance(11s);
    renewed();
  };
  alone.arrive_and_wait();
  EXPECT_EQ(s.seen->count(event_kind::lost), 0U);
}

/// Blocks the renewals of some names.
class barriers {
 public:
  void open(const std::string& name) {
    const std::lock_guard guard{mutex_};
    closed_.erase(name);
    changed_.notify_all();
  }
  void pass(const std::string& name) {
    std::unique_lock lock{mutex_};
    passing_.insert(name);
    changed_.wait(lock, [&] { return !closed_.contains(name); });
  }
  bool reached(const std::string& name) {
    const std::lock_guard guard{mutex_};
    return passing_.contains(name);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> closed_{"a", "b"}, passing_;
};

/// However the test ends, its threads end.
struct opening {
  ~opening() { of.open("a"), of.open("b"); }
  barriers& of;
};

TEST(renewal, wakes_its_own_waiters_among_waiters_for_another) {
  const auto room = std::make_shared<waiting_room>();
  const auto at = std::make_shared<barriers>();
  holdfast::session_options o;
  o.clock = room;
  holdfast::testing::fault_plan plan;
  plan.choose = [at](auto, std::string_view name, auto v) {
    if (v == verb::renew) at->pass(std::string(name));
    return holdfast::testing::fault::none;
  };
  o.decorate = holdfast::testing::faulty(plan, room);
  auto session = holdfast::open("memory:", o);
  lease a = mutex(session, "a").acquire(), b = mutex(session, "b").acquire();
  std::atomic<int> extended{0};
  std::vector<std::jthread> threads;
  const opening at_the_end{*at};
  const auto extend = [&](lease& l, int of_this_kind) {
    threads.emplace_back([&] {
      waiting_room::of_test = true;
      l.extend();
      if (&l == &a) ++extended;
    });
    if (of_this_kind == 0) {
      const std::string name = &l == &a ? "a" : "b";
      harness::eventually("it is on its way", [&] { return at->reached(name); });
    } else {
      harness::eventually("it waits", [&] { return room->asleep == of_this_kind; });
    }
  };
  extend(b, 0), extend(b, 1), extend(b, 2);
  extend(a, 0), extend(a, 3);
  at->open("a");
  harness::eventually("both of a", [&] { return extended == 2; });
}

/// A replica that took over, and lacks the last changes of its primary.
class behind_by_a_grant final : public harness::passing_on {
 public:
  behind_by_a_grant(std::unique_ptr<session_store> inner, const std::atomic<bool>& now)
      : passing_on(std::move(inner)), now_(now) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = passing_on::permits(name, c);
    if (now_ && reply && c.verb == verb::renew) {
      reply->outcome = holdfast::store::permits_outcome::queued;
    }
    return reply;
  }

 private:
  const std::atomic<bool>& now_;
};

TEST(renewal, that_finds_the_holder_in_the_queue_is_a_loss) {
  std::atomic<bool> failed_over{false};
  stage plain;
  auto options = plain.options();
  options.decorate = [&](auto inner) {
    return std::make_unique<behind_by_a_grant>(std::move(inner), failed_over);
  };
  const auto s = holdfast::open("memory:", options);
  const lease held = mutex(s, "m").acquire();
  failed_over = true;
  plain.clock->advance(11s);
  harness::eventually("the loss", [&] { return held.state() == holdfast::lease_state::lost; });
}

}  // namespace
