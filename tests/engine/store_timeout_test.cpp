#include <gtest/gtest.h>

#include <future>

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
  /// What a thread waits for; nothing if it gave up. However the test ends, the thread does.
  struct patient {
    patient(fair_mutex& m, std::optional<std::chrono::hours> limit)
        : got(std::async(std::launch::async, [&m, limit, enough = stop.get_token()] {
            waiting_room::of_test = true;
            std::optional<lease> mine;
            try {
              mine = limit ? m.try_acquire_for(*limit, enough) : m.acquire(enough);
            } catch (const holdfast::error& e) {
              EXPECT_EQ(e.reason(), holdfast::errc::unavailable) << e.what();
            }
            return mine;
          })) {}
    ~patient() { stop.request_stop(); }
    std::stop_source stop;
    std::future<std::optional<lease>> got;
  };
  /// So many seconds, in each of which it asks once.
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

TEST_F(store_timeout, counts_from_the_last_answer_and_not_over_all_that_failed) {
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

TEST_F(store_timeout, is_for_who_has_no_deadline) {
  script->set(verb::acquire, fault::drop_request);
  patient waiter(m, 1h);
  pass(20);
  script->set(verb::acquire, fault::none);
  pass(1);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(waiter.got.get());
}

}  // namespace
