#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "simulation/answers.hpp"
#include "simulation/encounters.hpp"
#include "simulation/scene.hpp"
#include "simulation/sql_server.hpp"

namespace {

using namespace simulation;
using namespace holdfast::store;

plan plan_of(store_kind store) {
  plan p;
  p.seed = refusing_seeds;
  p.store = store;
  p.names = {{}};
  p.processes.resize(1);
  return p;
}

/// What a process of such a plan does, and the first rule that it breaks.
std::string rule_broken_by(const plan& p, const std::function<void(scene&, process&)>& does) {
  scene of(p, false);
  process& one = of.here.add_process();
  of.processes.push_back(&one);
  of.here.start(one, "user", [&] { does(of, one); });
  (void)of.here.run(100 * second);
  return of.rules.found() ? of.rules.found()->rule : std::string();
}

permits_command acquiring(const owner_id& owner, session_store& at) {
  permits_command c{.verb = permits_verb::acquire, .owner = owner, .kind = kind::mutex};
  c.lease_us = c.queue_lease_us = 30'000'000;
  c.wait = true;
  c.peer = at.inbox().peer();
  return c;
}

TEST(left_open, a_wait_that_has_ended_and_listens_is_found) {
  const auto rule_with = [](int threads) {
    return rule_broken_by(plan_of(store_kind::told_slots), [&](scene& of, process& one) {
      const auto store = of.stores.front()->connect(one);
      (void)store->permits("n0", acquiring({1, 1}, *store));
      (void)store->permits("n0", acquiring({2, 2}, *store));
      of.users[{0, one.number}] = threads;
      for (int i = 0; i < 20; ++i) {
        of.watch_listeners(0);
        of.here.sleep(100 * millisecond);
      }
    });
  };
  EXPECT_EQ(rule_with(1), "") << "the one that holds does not listen";
  EXPECT_EQ(rule_with(0), "a wait that has ended listens no more");
}

TEST(left_open, a_file_that_is_open_at_the_end_is_found) {
  const auto rule_if = [](bool closes) {
    return rule_broken_by(plan_of(store_kind::told), [&](scene& of, process&) {
      const int file = ::eventfd(0, 0);
      if (closes) ::close(file);
      of.judge_open_files();
      if (!closes) ::close(file);
    });
  };
  EXPECT_EQ(rule_if(true), "");
  EXPECT_EQ(rule_if(false), "a process whose sessions have ended has closed their files");
}

TEST(left_open, holders_that_do_not_fit_together_are_found_where_they_are_shown) {
  const auto rule_with = [](std::uint32_t weight, std::uint32_t other) {
    return rule_broken_by(plan_of(store_kind::told), [&](scene& of, process&) {
      holdfast::name_info shows;
      shows.capacity = 3;
      shows.holders.resize(2);
      shows.holders[0].weight = weight, shows.holders[1].weight = other;
      judge_holders_shown(of.rules, shows);
    });
  };
  EXPECT_EQ(rule_with(1, 2), "");
  EXPECT_EQ(rule_with(1, 3), "holders that are shown together fit together");
}

#ifdef HOLDFAST_WITH_SQL
TEST(left_open, a_transaction_of_an_idle_connection_is_found) {
  const auto rule_with = [](const std::string& end) {
    auto p = plan_of(store_kind::mariadb);
    return rule_broken_by(p, [&](scene& of, process& one) {
      const auto store = of.stores.front()->connect(one);
      const auto by = sql_server::named(of.stores.front()->name()).open(one);
      (void)by->wait_until_connected(never);
      for (const auto& text : {std::string("start transaction"), end}) {
        if (!text.empty()) (void)by->wait_for(*by->send({{text}}), never);
      }
      for (int i = 0; i < 50; ++i) {
        of.watch_what_is_left_open();
        of.here.sleep(100 * millisecond);
      }
    });
  };
  EXPECT_EQ(rule_with("rollback"), "");
  EXPECT_EQ(rule_with("start transaction"), "no connection begins a transaction in another one");
  EXPECT_EQ(rule_with(""), "no connection stays in a transaction while it is idle");
}
#endif

TEST(refusals, are_errors_of_requests_that_were_or_were_not_carried_out) {
  const auto is_there = [](unsigned refuse, unsigned leave_open) {
    auto p = plan_of(store_kind::told);
    p.network.refuse = refuse, p.network.leave_open = leave_open;
    int there = 0;
    EXPECT_EQ(rule_broken_by(p,
                             [&](scene& of, process& one) {
                               const auto store = of.stores.front()->connect(one);
                               for (std::uint64_t i = 1; i <= 20; ++i) {
                                 const owner_id owner{i, i};
                                 const auto name = "n" + std::to_string(i);
                                 const auto said = store->permits(name, acquiring(owner, *store));
                                 EXPECT_EQ(said.ok(), refuse + leave_open == 0);
                                 EXPECT_EQ(!said && said.error().outcome_unknown, leave_open > 0);
                                 there += of.stores.front()->has(name, owner) ? 1 : 0;
                               }
                             }),
              "");
    return there;
  };
  EXPECT_EQ(is_there(0, 0), 20);
  EXPECT_EQ(is_there(1000, 0), 0);
  const int some = is_there(0, 1000);
  EXPECT_GT(some, 2);
  EXPECT_LT(some, 18);
}

TEST(refusals, are_in_a_third_of_the_plans_from_their_seeds_on) {
  int refuse = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    refuse += make_plan({refusing_seeds + i, theme::slots}).network.answers_all() ? 0 : 1;
    EXPECT_TRUE(make_plan({refusing_seeds - 1 - i, theme::slots}).network.answers_all());
  }
  EXPECT_GT(refuse, 40);
  EXPECT_LT(refuse, 130);
}

}  // namespace
