#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "harness/concurrently.hpp"
#include "harness/failing.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"
#include "waiting_room.hpp"

// How long a caller waits for a store that is away.
namespace {

using namespace engine_test;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

struct store_timeout : testing::Test {
  holdfast::session open() const {
    holdfast::session_options o;
    o.clock = room;
    o.store_timeout = 10s;
    holdfast::testing::fault_plan plan;
    plan.choose = [to = script](auto, auto, auto v) { return to->choose(v); };
    o.decorate = holdfast::testing::faulty(plan, room);
    return holdfast::open("memory:timeout", o);
  }
  /// A thread's attempt; nothing if it gave up. However the test ends, the thread ends.
  struct patient {
    using attempt = std::function<std::optional<lease>(std::stop_token)>;
    patient(const attempt& of, bool seen_asleep)
        : got(harness::concurrently([of, seen_asleep, enough = stop.get_token()] {
            waiting_room::of_test = seen_asleep;
            std::optional<lease> mine;
            try {
              mine = of(enough);
            } catch (const holdfast::error& e) {
              EXPECT_EQ(e.reason(), holdfast::errc::unavailable) << e.what();
            }
            return mine;
          })) {}
    template <class Lock>
    patient(Lock& m, std::optional<std::chrono::hours> limit, bool seen_asleep = true)
        : patient(
              [&m, limit](const auto& enough) -> std::optional<lease> {
                return limit ? m.try_acquire_for(*limit, enough) : m.acquire(enough);
              },
              seen_asleep) {}
    ~patient() { stop.request_stop(); }
    bool is_over() const { return got.wait_for(0s) == std::future_status::ready; }
    std::stop_source stop;
    std::future<std::optional<lease>> got;
  };
  /// Advances by this many seconds, in each of which the waiter asks once.
  void pass(int seconds) {
    for (; seconds > 0; --seconds) {
      harness::eventually("it sleeps", [&] { return room->asleep == 1; });
      const auto tries = script->count(verb::acquire);
      room->advance(1s);
      script->await(verb::acquire, tries + 1);
    }
    harness::eventually("it sleeps", [&] { return room->asleep == 1; });
  }

  std::shared_ptr<waiting_room> room = std::make_shared<waiting_room>();
  std::shared_ptr<engine_test::script> script = std::make_shared<engine_test::script>();
  holdfast::session holder = holdfast::open("memory:timeout", {.clock = room});
  lease held = fair_mutex(holder, "m", {.lease = holdfast::max_lease}).acquire();
  holdfast::session session = open();
  fair_mutex m{session, "m"};
};

TEST_F(store_timeout, counts_from_the_last_answer_and_not_over_all_failures) {
  patient waiter(m, std::nullopt);
  pass(1);
  for (int round = 0; round < 2; ++round) {
    script->set(verb::acquire, fault::drop_request);
    pass(7);
    script->set(verb::acquire, fault::none);
    pass(1);
  }
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(waiter.got.get());
}

TEST_F(store_timeout, is_for_waiters_without_a_deadline) {
  script->set(verb::acquire, fault::drop_request);
  patient waiter(m, 1h);
  pass(20);
  script->set(verb::acquire, fault::none);
  pass(1);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(waiter.got.get());
}

// The first waiter asks for all of them: those behind it have waited for the same.
TEST_F(store_timeout, is_not_added_up_along_the_local_queue) {
  holdfast::mutex free{session, "free"};
  for (const auto v : {verb::acquire, verb::release}) script->set(v, fault::drop_request);
  patient first(free, std::nullopt);
  script->await(verb::acquire, 1);
  patient second(free, std::nullopt, false);
  patient third(free, std::nullopt, false);
  const auto line = session.impl()->local_queue_of("free");
  harness::eventually("two in line", [&] { return line->waiting() == 2; });
  const auto until = [&](const std::string& what, const auto& came) {
    harness::eventually(what, [&] { return came() || first.is_over(); });
  };
  while (!first.is_over()) {
    until("it sleeps, or is over", [&] { return room->asleep == 1; });
    const auto tries = script->count(verb::acquire);
    room->advance(1s);
    until("another try, or none", [&] { return script->count(verb::acquire) > tries; });
  }
  for (auto* one : {&first, &second, &third}) EXPECT_FALSE(one->got.get());
}

}  // namespace
