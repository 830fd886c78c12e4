#include <gtest/gtest.h>

#include <condition_variable>
#include <holdfast/both.hpp>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/stage.hpp"

// Users' code is always called with no mutex of the library held: it may call back into everything,
// release, destroy, and throw where the standard allows it.
namespace {

using namespace engine_test;
using fault = holdfast::testing::fault;
using verb = holdfast::store::permits_verb;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::lease;

// A test of the test.
TEST(held_mutexes, are_counted_for_each_thread) {
  const int one = harness::counts_held_mutexes() ? 1 : 0;
  std::mutex a, b;
  EXPECT_EQ(harness::held_mutexes(), 0);
  const std::lock_guard first{a};
  EXPECT_EQ(harness::held_mutexes(), one);
  {
    std::unique_lock second{b, std::try_to_lock};
    EXPECT_EQ(harness::held_mutexes(), 2 * one);
    std::condition_variable never;
    never.wait_for(second, std::chrono::nanoseconds(1));
    EXPECT_EQ(harness::held_mutexes(), 2 * one) << "as before the wait";
  }
  EXPECT_EQ(harness::held_mutexes(), one);
  std::thread([] { EXPECT_EQ(harness::held_mutexes(), 0) << "another thread's"; }).join();
}

/// Calls every function of a session and its locks that does not wait for long. Their errors do not
/// matter: that they return does.
struct everything {
  explicit everything(const holdfast::session& s) : session(s) {}
  holdfast::session session;
  holdfast::mutex plain{session, "plain"}, other{session, "other"};
  holdfast::fair_mutex fair{session, "fair"};
  holdfast::recursive_mutex again{session, "again"};
  holdfast::shared_mutex shared{session, "shared"};
  holdfast::semaphore permits{session, "permits", 5};
  holdfast::election leads{session, "leads"};
  holdfast::mutex a{session, "a"}, b{session, "b"};
  holdfast::multi_lock all{a, b};
  holdfast::redlock most{{session}, "most"};
  holdfast::both<holdfast::mutex, holdfast::mutex> pair{plain, other};

  template <class... Calls>
  static void each(Calls... calls) {
    const auto one = [](auto& call) {
      try {
        (void)call();
      } catch (const holdfast::error&) {
        return;
      }
    };
    (one(calls), ...);
  }
  template <class Lock>
  static void about(Lock& lock) {
    each([&] { return lock.fence(); }, [&] { return lock.check(), 0; },
         [&] { return lock.lost().stop_requested(); });
  }
  template <class Lock>
  static void try_all(Lock& lock) {
    each(
        [&] {
          if (lock.try_lock()) lock.unlock();
          return 0;
        },
        [&] { return about(lock), 0; });
  }
  void look() {
    EXPECT_EQ(harness::held_mutexes(), 0);
    each([&] { return session.names().size(); }, [&] { return session.show("plain").kind; },
         [&] { return session.store_operations(); }, [&] { return leads.current().has_value(); },
         [&] { return permits.available(); }, [&] { return most.last_votes().size(); },
         [&] { return most.attempts(); }, [&] { return all.fences().size(); },
         [&] { return all.check(), 0; }, [&] { return all.lost().stop_requested(); });
    about(plain), about(fair), about(again), about(shared), about(most);
  }
  void call() {
    look();
    try_all(plain), try_all(fair), try_all(again), try_all(shared);
    each([&] { return permits.try_acquire().has_value(); },
         [&] { return leads.try_campaign().has_value(); },
         [&] { return all.try_acquire().has_value(); },
         [&] { return pair.try_acquire().has_value(); },
         [&] { return session.force_release("nobody"); },
         [&] { return async_acquire(plain, 0s).start([](auto) {}), 0; });
  }
};

struct callbacks : testing::Test {
  stage s;
  everything all{s.session};
  std::atomic<int> told{0};

  auto calls_everything() {
    return [this] {
      all.call();
      ++told;
    };
  }
  void until_told(int times) {
    harness::eventually("told", [&] { return told >= times; });
  }

  /// One lease of each kind, all lost in the same way.
  struct holding {
    explicit holding(everything& of)
        : plain(of.plain.acquire()),
          fair(of.fair.acquire()),
          read(of.shared.acquire_shared()),
          permit(of.permits.acquire(2)),
          leads(of.leads.campaign()),
          both(of.all.acquire()),
          most(of.most.acquire()) {}
    lease plain, fair, read, permit;
    holdfast::leadership leads;
    holdfast::multi_lease both;
    holdfast::quorum_lease most;
    static constexpr int kinds = 7;
    std::vector<std::stop_token> losses() const {
      return {plain.lost(), fair.lost(), read.lost(), permit.lost(),
              leads.lost(), both.lost(), most.lost()};
    }
  };
  template <class Callback>
  static auto on_all(const holding& held, Callback callback) {
    std::vector<std::unique_ptr<std::stop_callback<Callback>>> made;
    for (const auto& loss : held.losses()) {
      made.push_back(std::make_unique<std::stop_callback<Callback>>(loss, callback));
    }
    return made;
  }
};

TEST_F(callbacks, of_a_loss_by_time_may_call_everything) {
  holding held(all);
  const auto on_loss = on_all(held, calls_everything());
  s.script->set(verb::renew, fault::drop_request);
  s.script->set(verb::acquire, fault::drop_request);
  s.clock->advance(31s);
  until_told(holding::kinds);
}

TEST_F(callbacks, of_a_loss_that_a_renewal_finds_may_call_everything) {
  lease held = all.plain.acquire();
  const auto calls = calls_everything();
  const std::stop_callback on_loss{held.lost(), calls};
  EXPECT_EQ(s.session.force_release("plain"), 1u);
  s.clock->advance(10s);
  until_told(1);
}

TEST_F(callbacks, of_a_loss_that_a_release_finds_may_call_everything) {
  holding held(all);
  const auto on_loss = on_all(held, calls_everything());
  for (const auto& name : s.session.names()) (void)s.session.force_release(name);
  EXPECT_EQ(held.plain.release(), errc::lost);
  EXPECT_EQ(held.fair.release(), errc::lost);
  EXPECT_EQ(held.read.release(), errc::lost);
  EXPECT_EQ(held.permit.release(), errc::lost);
  EXPECT_EQ(held.leads.resign(), errc::lost);
  EXPECT_EQ(held.both.release(), errc::lost);
  EXPECT_GE(told, 5);
}

TEST_F(callbacks, of_a_loss_that_is_found_by_asking_may_call_everything) {
  s.script->hang(verb::renew);  // the keeper does not find out, whatever the time
  all.plain.lock();
  all.most.lock();
  const auto calls = calls_everything();
  {
    const std::stop_callback of_plain{all.plain.lost(), calls};
    const std::stop_callback of_most{all.most.lost(), calls};
    s.clock->advance(31s);
    EXPECT_TRUE(all.plain.lost().stop_requested());
    EXPECT_TRUE(all.most.lost().stop_requested());
    until_told(2);
  }
  s.script->let_go();
  all.plain.unlock();
  all.most.unlock();
}

TEST_F(callbacks, of_a_loss_in_the_middle_of_a_thread_form_may_unlock) {
  all.most.lock();
  all.all.lock();
  {
    const auto unlock_most = [&] {
      EXPECT_EQ(harness::held_mutexes(), 0);
      if (++told == 1) all.most.unlock();
    };
    s.clock->advance(1ms);
    const std::stop_callback of_most{all.most.lost(), unlock_most};
    s.script->hang(verb::acquire);
    s.clock->advance(31s);
    EXPECT_TRUE(all.most.lost().stop_requested() || told > 0);
    s.script->let_go();
    until_told(1);
  }
  all.all.unlock();
}

TEST_F(callbacks, of_a_loss_may_release_and_destroy_the_lost_lease) {
  auto held = std::make_unique<holding>(all);
  const auto lets_go = [&] {
    EXPECT_EQ(harness::held_mutexes(), 0);
    ++told;
  };
  auto losses = on_all(*held, lets_go);
  std::optional<lease> extra = holdfast::mutex(s.session, "extra").acquire();
  const auto destroys = [&] {
    extra.reset();
    ++told;
  };
  const std::stop_callback on_extra{extra->lost(), destroys};
  s.script->set(verb::renew, fault::drop_request);
  s.script->set(verb::acquire, fault::drop_request);
  s.clock->advance(31s);
  until_told(holding::kinds + 1);
  EXPECT_FALSE(extra);
  losses.clear();
  held.reset();
}

// The assignment releases the lost lease, and so calls back.
TEST_F(callbacks, of_a_loss_may_assign_to_a_lease_that_is_being_assigned_to) {
  holdfast::fair_mutex lost{s.session, "lost"}, again{s.session, "put again"};
  holdfast::fair_mutex next{s.session, "next"};
  lease held = lost.acquire();
  const auto replaces = [&] {
    held = again.acquire();
    ++told;
  };
  const std::stop_callback on_loss{held.lost(), replaces};
  EXPECT_EQ(s.session.force_release("lost"), 1U);
  held = next.acquire();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(held.name(), "next");
  EXPECT_TRUE(s.session.show("put again").holders.empty()) << "no object has this lease";
}

/// Calls back at every event, but not at events that its own calls cause.
class calling_back final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    EXPECT_EQ(harness::held_mutexes(), 0) << to_string(e.kind);
    thread_local bool inside = false;
    if (inside) return;
    ++looking_;
    const auto of = target_.load();
    if (of != nullptr) {
      inside = true;
      of->look();
      inside = false;
      ++told_;
    }
    --looking_;
    throw std::runtime_error("nobody minds");
  }
  void call_back(everything* of) { target_ = of; }
  void stop() {
    target_ = nullptr;
    harness::eventually("nobody looks any more", [&] { return looking_ == 0; });
  }
  int told() const { return told_; }

 private:
  std::atomic<everything*> target_{nullptr};
  std::atomic<int> told_{0}, looking_{0};
};

TEST(an_observer, may_use_the_session_and_throw_at_any_event) {
  stage s;
  auto observer = std::make_shared<calling_back>();
  auto o = s.options();
  o.observer = observer;
  const auto session = holdfast::open("memory:", o);
  everything all(session);
  observer->call_back(&all);
  all.call();
  {
    callbacks::holding held(all);
    (void)all.fair.try_acquire_for(0s);
    all.plain.unlock();
    all.shared.unlock();
    all.again.unlock();
    all.all.unlock();
    all.most.unlock();
    s.script->set(verb::renew, fault::drop_request);
    s.clock->advance(10s);
    harness::eventually("in doubt",
                        [&] { return held.plain.state() == holdfast::lease_state::suspect; });
    s.script->set(verb::renew, fault::none);
    s.clock->advance(1s);
    harness::eventually("held again",
                        [&] { return held.plain.state() == holdfast::lease_state::held; });
    s.script->set(verb::release, fault::drop_request);
    (void)held.permit.release();
    s.script->set(verb::release, fault::none);
    s.script->set(verb::renew, fault::drop_request);
    s.script->set(verb::acquire, fault::drop_request);
    s.clock->advance(31s);
    harness::eventually("lost", [&] { return held.fair.lost().stop_requested(); });
    s.script->set(verb::acquire, fault::none);
  }
  observer->stop();
  EXPECT_GT(observer->told(), 10);
}

TEST_F(callbacks, of_a_result_may_call_everything_and_begin_the_next) {
  const auto expect = [&](auto begin) {
    const int before = told;
    begin().start([&](auto how) {
      EXPECT_TRUE(how);
      all.call();
      ++told;
    });
    until_told(before + 1);
  };
  expect([&] { return async_acquire(all.plain); });
  expect([&] { return async_acquire(all.fair); });
  expect([&] { return async_acquire(all.shared); });
  expect([&] { return async_acquire_shared(all.shared); });
  expect([&] { return async_acquire(all.permits, 3); });
  expect([&] { return async_campaign(all.leads); });
  expect([&] { return async_current(all.leads); });
  expect([&] { return async_acquire(all.all); });
  expect([&] { return async_acquire(all.pair); });
  expect([&] { return async_acquire(all.most); });
  // A release is sent behind the callback; and a poller waits on a clock that stands still.
  harness::eventually("it is free", [&] { return s.session.show("most").holders.empty(); });
  expect([&] { return async_release(all.most.acquire()); });
  expect([&] { return async_release(all.plain.acquire()); });
  expect([&] { return async_names(s.session); });
  const lease held = all.fair.acquire();
  expect([&] { return async_extend(held); });
  const holdfast::multi_lease several = all.all.acquire();
  expect([&] { return async_extend(several); });
}

}  // namespace
