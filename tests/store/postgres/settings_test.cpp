#include "fixture.hpp"
#include "harness/short_rules.hpp"

// Settings of a role that change what statements mean, or how the server carries them out. No test
// of one primitive has them all.
namespace postgres_test {
namespace {

class postgres_settings : public postgres_store {
 protected:
  postgres_settings() { (void)open(); }  // makes the tables
  void expect_short_rules_with(const std::vector<std::string>& settings) const {
    ask("alter role " + user_ + " reset all");
    for (const auto& setting : settings) {
      SCOPED_TRACE(setting);
      let_user_with("set " + setting);
    }
    harness::expect_short_rules({url_of_user(), url_of_user(), url()});
    harness::expect_short_rules({url_of_user("&mode=session"), url("&mode=session")}, false);
  }
};

TEST_F(postgres_settings, of_many_kinds_change_no_rule) {
  const std::vector<std::string> all[] = {
      {"default_transaction_isolation = serializable", "default_transaction_deferrable = on",
       "row_security = off"},
      {"default_transaction_isolation = 'repeatable read'", "synchronous_commit = off",
       "plan_cache_mode = force_generic_plan"},
      {"standard_conforming_strings = off", "bytea_output = escape", "client_encoding = LATIN1",
       "datestyle = German", "timezone = 'Asia/Tokyo'", "intervalstyle = sql_standard",
       "extra_float_digits = -15", "array_nulls = off", "transform_null_equals = on"},
      {"lock_timeout = 1", "idle_in_transaction_session_timeout = 1", "work_mem = '64kB'"}};
  for (const auto& settings : all) expect_short_rules_with(settings);
}

// The server would compile a plan that it thinks expensive because a kind of scan is turned off:
// each statement would take far longer. It leaves a file for each one that it compiles.
TEST_F(postgres_settings, of_the_planner_have_no_statement_compiled) {
  const auto compiled = [&] {
    return ask("select count(*) from pg_ls_dir('.') as file where file like '%.bc'");
  };
  for (const std::string setting : {"enable_seqscan = off", "jit_above_cost = 0"}) {
    SCOPED_TRACE(setting);
    let_user_with("set jit_dump_bitcode = on");
    let_user_with("set " + setting);
    auto s = holdfast::open(url_of_user());
    const auto before = compiled();  // of what a new connection asks
    holdfast::mutex m{s, "m"};
    m.lock(), m.unlock();
    EXPECT_EQ(compiled(), before);
  }
}

// The operators fit the types as well as the server's own, or better, and stop the clock.
TEST_F(postgres_settings, that_name_a_schema_with_operators_grant_no_lock_twice) {
  const std::string there = "\"" + user_ + "\".";
  ask("create schema " + user_ + "; grant usage on schema " + user_ + " to " + user_);
  for (const std::string factor : {"integer", "numeric"}) {
    ask("create function " + there + "stopped(numeric, " + factor +
        ") returns numeric language sql as 'select 1::numeric'; create operator " + there +
        "* (leftarg = numeric, rightarg = " + factor + ", function = " + there + "stopped)");
  }
  for (const std::string& path : {user_, user_ + ", pg_catalog"}) {
    SCOPED_TRACE(path);
    expect_short_rules_with({"search_path = " + path});
  }
  ask("drop schema " + user_ + " cascade");
}

TEST_F(postgres_settings, by_which_a_database_has_another_encoding_are_refused) {
  for (const std::string encoding : {"LATIN1", "SQL_ASCII"}) {
    ask("create database " + user_ + " encoding '" + encoding + "' template template0 locale 'C'");
    const auto host = base_.substr(0, base_.rfind('/') + 1);
    for (const std::string mode : {"lease", "session"}) {
      const auto refused = harness::outcome_of_opening(host + user_ + "?mode=" + mode);
      EXPECT_EQ(refused.reason, holdfast::errc::unsupported) << refused.text;
      EXPECT_TRUE(contains(refused.text, encoding)) << refused.text;
    }
    ask("drop database " + user_ + " with (force)");
  }
}

// As a trigger does that returns null by mistake.
TEST_F(postgres_settings, of_the_table_that_skip_a_change_are_named) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  first.lock(), first.unlock();
  ask("create function " + table("skip") +
      "() returns trigger language plpgsql as 'begin return null; end'");
  for (const std::string event : {"update", "insert"}) {
    ask("create trigger t before " + event + " on " + table("holdfast_records") +
        " for each row execute function " + table("skip") + "()");
    const std::string name = event == "update" ? "m" : "new";
    for (const auto& s : {a, b}) {
      const auto refused = outcome_of([&] { (void)holdfast::mutex(s, name).try_acquire(); });
      EXPECT_EQ(refused.reason, holdfast::errc::foreign_data) << refused.text;
      EXPECT_TRUE(contains(refused.text, "trigger")) << refused.text;
    }
    ask("drop trigger t on " + table("holdfast_records"));
  }
  EXPECT_TRUE(first.try_lock());
  EXPECT_FALSE(second.try_lock());
  first.unlock();
}

// The server counts what such a trigger has undone as a change. One that runs afterwards may copy
// changes to another table.
TEST_F(postgres_settings, of_the_table_that_may_undo_a_change_are_refused) {
  (void)open();
  for (const std::string name : {"holdfast_records", "holdfast_meta"}) {
    ask("create function " + table("undo") +
        "() returns trigger language plpgsql as 'begin return old; end'; create trigger undoes "
        "before update on " +
        table(name) + " for each row execute function " + table("undo") + "()");
    const auto refused = harness::outcome_of_opening(url());
    EXPECT_EQ(refused.reason, holdfast::errc::foreign_data) << refused.text;
    EXPECT_TRUE(contains(refused.text, "undoes")) << refused.text;
    ask("drop trigger undoes on " + table(name) + "; create trigger copies after update on " +
        table(name) + " for each row execute function " + table("undo") + "()");
    harness::expect_short_rules({url(), url()});
    ask("drop function " + table("undo") + "() cascade");
  }
}

// The client library prints what it is told before somebody listens.
TEST_F(postgres_settings, by_which_the_server_tells_much_print_nothing) {
  let_user_with("set client_min_messages = debug5");
  testing::internal::CaptureStderr();
  {
    auto s = holdfast::open(url_of_user());
    holdfast::mutex m{s, "m"};
    m.lock(), m.unlock();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace postgres_test
