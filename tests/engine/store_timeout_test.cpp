#include <gtest/gtest.h>

#include <future>

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

// The first in line asks for all of them: those behind it have waited for the same.
TEST(store_timeouts, are_not_added_up_along_a_line_of_this_process) {
  stage s;
  holdfast::mutex m{s.session, "m"};
  for (const auto v : {verb::acquire, verb::release}) s.script->set(v, fault::drop_request);
  const auto reason = [&] { return harness::outcome_of([&] { (void)m.acquire(); }).reason; };
  std::vector<std::future<holdfast::errc>> all;
  all.push_back(std::async(std::launch::async, reason));
  s.script->await(verb::acquire, 1);
  for (int i = 0; i < 2; ++i) all.push_back(std::async(std::launch::async, reason));
  const auto line = s.session.impl()->local_queues().at("m", *s.clock);
  harness::eventually("two in line", [&] { return line->waiting() == 2; });
  const auto is_over = [](const auto& f) { return f.wait_for(0s) == std::future_status::ready; };
  while (!is_over(all.front())) {
    const auto tries = s.script->count(verb::acquire);
    s.clock->advance(1s);
    harness::eventually("another try, or none", [&] {
      return s.script->count(verb::acquire) > tries || is_over(all.front());
    });
  }
  for (auto& one : all) EXPECT_EQ(one.get(), holdfast::errc::unavailable);
}

}  // namespace
