#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "harness/still_clock.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// A waiter that is given the lock of its process, and finds it in doubt or lost before its turn has
// begun, is served before the waiters that came after it.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::lease;
using holdfast::mutex;
using holdfast::result;
using verb = holdfast::store::permits_verb;

class gate {
 public:
  explicit gate(bool open) : open_(open) {}
  void open() {
    open_ = true;
    open_.notify_all();
  }
  void pass() const { open_.wait(false); }

 private:
  std::atomic<bool> open_;
};

/// The test's threads do nothing after they wake up before their gate opens.
class drowsy_clock final : public harness::still_clock {
 public:
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    time.wait_until(lock, cv, until);
    if (thread == 0) return;
    lock.unlock();
    (thread == 1 ? first : others).pass();
    lock.lock();
  }
  static inline thread_local int thread = 0;
  gate first{false}, others{false};
};

/// Holds up the thread that reports that a lease is suspect, which also reports that it is lost.
class slow_listener final : public holdfast::observer {
 public:
  explicit slow_listener(bool slow) : hears(!slow) {}
  void on_event(const holdfast::event& e) override {
    if (e.kind == event_kind::suspect) in_doubt = true, hears.pass();
    if (e.kind == event_kind::lost) lost = true;
  }
  std::atomic<bool> in_doubt{false}, lost{false};
  gate hears;
};

/// Three waiters, in the order in which they came. The first is given the lock, and does not notice
/// that for a while.
struct line {
  line(bool threads, bool slow) : by_threads(threads), seen(std::make_shared<slow_listener>(slow)) {
    for (int who = 1; who <= 3; ++who) {
      add(who);
      harness::eventually("in line", [&] { return waiting() == std::size_t(who); });
    }
    if (!by_threads) {
      async_acquire(other).start([this](auto) { busy = true, clock->first.pass(); });
      harness::eventually("busy", [&] { return busy.load(); });
    }
    script->hang(verb::renew);
    EXPECT_FALSE(held.release());
    EXPECT_EQ(waiting(), 2U) << "it was passed on";
    clock->time.advance(10s);
    script->await(verb::renew, 1);
    pass_until("it is in doubt", seen->in_doubt);
  }
  ~line() {
    script->let_go();
    seen->hears.open();
    clock->first.open(), clock->others.open();
    for (auto& t : threads) t.join();
  }
  void add(int who) {
    if (!by_threads) {
      return async_acquire(m).start([this, who](result<lease> got) {
        EXPECT_TRUE(got);
        order.push_back(who), ++served;
      });
    }
    threads.emplace_back([this, who] {
      drowsy_clock::thread = who;
      const lease mine = m.acquire();
      order.push_back(who), ++served;
    });
  }
  std::size_t waiting() { return session.impl()->local_queue_of("m")->waiting(); }
  void pass_until(const char* what, const std::atomic<bool>& is_so) {
    harness::eventually(what, [&] {
      harness::pass(clock->time, 250ms);
      return is_so.load();
    });
  }
  /// `again`: the first waiter stands in line again before the others go on.
  std::vector<int> served_in_order(bool again = false) {
    const auto others = waiting();
    clock->first.open();
    if (again && by_threads)
      harness::eventually("in line again", [&] { return waiting() == others + 1; });
    clock->others.open();
    harness::eventually("all are served", [&] {
      harness::pass(clock->time, 250ms);
      return served == 3;
    });
    return order;
  }

  const bool by_threads;
  std::vector<int> order;
  std::atomic<int> served{0};
  std::atomic<bool> busy{false};
  std::shared_ptr<drowsy_clock> clock = std::make_shared<drowsy_clock>();
  std::shared_ptr<slow_listener> seen;
  std::shared_ptr<engine_test::script> script = std::make_shared<engine_test::script>();
  holdfast::session session = holdfast::open("memory:", scripted(clock, seen, script));
  mutex m{session, "m", {.local_time = 1h, .max_bypass = 0}}, other{session, "other"};
  lease held = m.acquire();
  std::vector<std::thread> threads;
};

TEST(kept_turn, of_a_waiter_that_was_given_a_lock_in_doubt) {
  for (const bool by_threads : {true, false}) {
    EXPECT_EQ(line(by_threads, false).served_in_order(), (std::vector{1, 2, 3})) << by_threads;
  }
}

TEST(kept_turn, of_a_waiter_that_finds_the_loss_itself) {
  for (const bool by_threads : {true, false}) {
    line all(by_threads, true);
    all.clock->time.advance(20s);
    EXPECT_EQ(all.served_in_order(), (std::vector{1, 2, 3})) << by_threads;
  }
}

// The report of the loss has given the turn at the store to the next waiter.
TEST(kept_turn, is_the_next_one_after_a_loss_that_was_reported_before) {
  for (const bool by_threads : {true, false}) {
    line all(by_threads, false);
    all.pass_until("it is lost", all.seen->lost);
    EXPECT_EQ(all.served_in_order(true), (std::vector{2, 1, 3})) << by_threads;
  }
}

}  // namespace
