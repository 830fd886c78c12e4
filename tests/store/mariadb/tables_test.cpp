#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "fixture.hpp"
#include "harness/least_rights.hpp"

// The tables: what people see in them, who may use them, and how the library treats other programs'
// tables.
namespace mariadb_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::errc;

TEST_F(mariadb_store, select_from_holdfast_locks_tells_the_holders) {
  auto a = open(), b = open();
  holdfast::lock_options o;
  o.reason = "invoices of May";
  o.lease = 60s;
  holdfast::mutex m{a, "billing", o}, rival{b, "billing"};
  auto held = m.acquire();
  std::thread waiter([&] { rival.lock(), rival.unlock(); });
  eventually("a waiter in the view", [&] {
    return ask("select pid from " + table("holdfast_waiters") +
               " where name = 'billing' and place = 1") == std::to_string(::getpid());
  });
  holdfast::mutex free{a, "free"};
  free.lock(), free.unlock();
  EXPECT_EQ(
      ask("select group_concat(concat_ws(' ', name, kind, pid, reason, fence, holders, waiters, "
          "length(holder), since between now(6) - interval 5 minute and now(6), "
          "expires between now(6) and now(6) + interval 60 second)) from " +
          table("holdfast_locks")),
      "billing mutex " + std::to_string(::getpid()) + " invoices of May " +
          std::to_string(held.fence()) + " 1 1 8 1 1");
  (void)held.release();
  waiter.join();
}

TEST_F(mariadb_store, a_free_name_has_no_holder_in_the_view) {
  auto s = open();
  holdfast::latch(s, "l", 3).count_down();
  (void)holdfast::rate_limiter(s, "r", {{.tokens = 5, .per = 100s}}).try_take(1);
  EXPECT_EQ(ask("select group_concat(concat_ws(' ', kind, coalesce(holder, 'nobody'), "
                "coalesce(host, 'nowhere'), coalesce(since, expires, fence, 'never'), waiters) "
                "order by name) from " +
                table("holdfast_locks")),
            "latch nobody nowhere never 0,rate_limiter nobody nowhere never 0");
}

TEST_F(mariadb_store, names_that_differ_in_case_quotes_or_letters_are_different_locks) {
  auto s = open();
  std::vector<std::unique_ptr<holdfast::mutex>> all;
  for (const char* name : {"order", "Order", "order ", "o'rder", "o\"rder", "o\\rder", "o`rder",
                           "o;rder", "%s", "ördér", "order\u0301", "\xf0\x9f\x94\x92", "null"}) {
    all.push_back(std::make_unique<holdfast::mutex>(s, name));
    EXPECT_TRUE(all.back()->try_lock()) << name;
  }
  EXPECT_EQ(s.names().size(), all.size());
  EXPECT_EQ(outcome_of([&] { holdfast::mutex(s, std::string("or\0der", 6)); }).reason,
            holdfast::errc::invalid_name)
      << "a NUL, at which a C string would end";
  for (auto& m : all) m->unlock();
  EXPECT_EQ(s.names().size(), 0U);
}

TEST_F(mariadb_store, programs_that_make_the_tables_at_the_same_moment_all_succeed) {
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&] { EXPECT_EQ(outcome_of([&] { (void)open(); }).text, ""); });
  }
  for (auto& t : all) t.join();
}

TEST_F(mariadb_store, each_documented_right_is_needed_and_its_lack_is_reported) {
  (void)open();
  const auto all = harness::each_right_on_page("mariadb");
  const auto give_all_but = [&](std::size_t missing) {
    ask("revoke all privileges, grant option from " + user_ + "@'%'");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto object = all[i].object.substr(all[i].object.find('.') + 1);
      if (i != missing)
        ask("grant " + all[i].privilege + " on " + table(object) + " to " + user_ + "@'%'");
    }
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    give_all_but(i);
    const auto o =
        outcome_of([&] { harness::use_everything(url_of_user(), "n" + std::to_string(i)); });
    // Only the sweep of unused rows needs that right, and nobody waits for the sweep.
    if (all[i].privilege == "update" && all[i].object.ends_with("holdfast_meta") && !o.failed)
      continue;
    EXPECT_EQ(o.reason, errc::not_permitted)
        << "without " << all[i].privilege << " on " << all[i].object << ": " << o.text;
  }
  give_all_but(all.size());
  EXPECT_EQ(outcome_of([&] { harness::use_everything(url_of_user(), "whole"); }).text, "");
}

TEST_F(mariadb_store, missing_rights_of_which_no_error_tells_are_among_the_facts) {
  (void)open();
  const std::string user = " to " + user_ + "@'%'";
  ask("grant select, insert, update on " + table("holdfast_records") + user + "; grant select on " +
      table("holdfast_meta") + user);
  const auto missing = [&] {
    std::vector<std::string> all;
    for (const auto& f : holdfast::open(url_of_user()).facts())
      if (f.name == "missing_right") all.push_back(f.value);
    return all;
  };
  using rights = std::vector<std::string>;
  EXPECT_EQ(missing(), (rights{"delete on holdfast_records", "update on holdfast_meta"}));
  ask("grant delete on " + table("holdfast_records") + user);
  EXPECT_EQ(missing(), rights{"update on holdfast_meta"});
  ask("grant update on " + table("holdfast_meta") + user);
  EXPECT_EQ(missing(), rights{});
}

TEST_F(mariadb_store, a_user_that_may_not_make_tables_gets_the_statements_and_needs_no_more) {
  const auto refused = harness::outcome_of_opening(url_of_user());
  EXPECT_EQ(refused.reason, errc::not_permitted);
  auto script = refused.text.substr(refused.text.find("create database"));
  script.resize(script.rfind(';') + 1);
  for (std::size_t at; (at = script.find(" to app;")) != script.npos;) {
    script.replace(at, 8, " to " + user_ + "@'%';");
  }
  ask(script);
  auto s = holdfast::open(url_of_user());
  holdfast::mutex m{s, "m"};
  m.lock();
  holdfast::latch l{s, "l", 1};
  l.count_down();
  EXPECT_EQ(s.names().size(), 2U);
  m.unlock();
}

TEST_F(mariadb_store, tables_of_a_newer_holdfast_are_left_alone) {
  auto before = open();
  ask("update " + table("holdfast_meta") + " set format = 2");
  EXPECT_EQ(outcome_of([&] { (void)open(); }).reason, errc::newer_format);
  holdfast::mutex m{before, "m"};
  EXPECT_EQ(outcome_of([&] { m.lock(); }).reason, errc::newer_format);
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_records")), "0");
}

TEST_F(mariadb_store, tables_whose_making_was_interrupted_are_made_to_the_end) {
  (void)open();
  ask("delete from " + table("holdfast_meta"));
  ask("drop view " + table("holdfast_locks"));
  const auto s = open();
  EXPECT_TRUE(holdfast::mutex(s, "m").try_acquire());
  EXPECT_EQ(ask("select format from " + table("holdfast_meta")), "1");
}

// This user may create tables, and no views.
TEST_F(mariadb_store, views_that_one_session_could_not_make_are_made_by_the_next) {
  ask("create database `" + database_ + "`");
  ask("grant create, select, insert, update, delete on `" + database_ + "`.* to " + user_ + "@'%'");
  const auto refused = harness::outcome_of_opening(url_of_user());
  EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
  (void)open();
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_locks")), "0");
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_waiters")), "0");
}

TEST_F(mariadb_store, tables_that_are_altered_while_in_use_are_foreign_data) {
  auto s = impatient();
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  ask("alter table " + table("holdfast_records") + " rename column version to revision");
  EXPECT_EQ(outcome_of([&] { m.lock(); }).reason, errc::foreign_data);
  EXPECT_EQ(outcome_of([&] { (void)open(); }).reason, errc::foreign_data);
  ask("alter table " + table("holdfast_records") + " rename column revision to version");
  EXPECT_TRUE(m.try_lock());
  m.unlock();
  ask("drop table " + table("holdfast_records"));
  const auto missing = outcome_of([&] { m.lock(); });
  EXPECT_EQ(missing.reason, errc::foreign_data);
  EXPECT_TRUE(contains(missing.text, "drop what is left")) << missing.text;
  EXPECT_EQ(outcome_of([&] { (void)open(); }).reason, errc::foreign_data);
  ask("drop table " + table("holdfast_meta"));
  (void)open();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST_F(mariadb_store, a_row_of_another_program_is_left_as_it_is) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  const auto reason = [&](const std::string& record) {
    ask("replace into " + table("holdfast_records") + " values ('m', 1, '" + record + "')");
    const auto failed = outcome_of([&] { (void)m.try_lock(); });
    EXPECT_EQ(ask("select record from " + table("holdfast_records")), record);
    return failed.reason;
  };
  EXPECT_EQ(reason(R"({"mine": 1})"), errc::foreign_data);
  EXPECT_EQ(reason(R"([1,"mutex",1])"), errc::corrupt);
  EXPECT_EQ(reason(R"([2,"mutex",0,0,[],[]])"), errc::newer_format);
}

TEST_F(mariadb_store, one_row_that_cannot_be_read_hides_no_other_name) {
  auto s = open();
  holdfast::mutex m{s, "good"};
  const auto held = m.acquire();
  ask("insert into " + table("holdfast_records") +
      R"( values ('damaged', 1, '[1,"mutex",1]'), ('newer', 1, '[2,"mutex",0,0,[],[]]'),
          ('foreign', 1, '{"mine": 1}'))");
  auto names = s.names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"damaged", "foreign", "good", "newer"}));
  EXPECT_EQ(s.show("good").holders.size(), 1U);
  const auto reason = [&](const char* name) {
    return outcome_of([&] { (void)s.show(name); }).reason;
  };
  EXPECT_EQ(reason("damaged"), errc::corrupt);
  EXPECT_EQ(reason("newer"), errc::newer_format);
  EXPECT_EQ(reason("foreign"), errc::foreign_data);
}

// The row looks as free as others, and its fence is not a number.
TEST_F(mariadb_store, one_row_that_cannot_be_read_keeps_no_other_from_being_swept) {
  {
    auto s = open();
    holdfast::mutex m{s, "good"}, damaged{s, "damaged"};
    m.lock(), m.unlock();
    ask("insert into " + table("holdfast_records") +
        R"( values ('damaged', 1, '[1,"mutex",0,"x",[],[]]'))");
    EXPECT_EQ(outcome_of([&] { damaged.lock(); }).reason, errc::corrupt);
  }
  EXPECT_EQ(ask("select name from " + table("holdfast_records")), "damaged");
}

TEST_F(mariadb_store, a_name_that_was_removed_leaves_its_fence_behind_as_a_floor) {
  std::uint64_t last = 0;
  {
    auto s = open();
    holdfast::mutex m{s, "m"};
    m.lock(), m.unlock();
    // An hour ahead of the server's clock.
    ask("update " + table("holdfast_records") +
        " set version = version + 1, record = concat('[1,\"mutex\",0,', "
        "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) + 3600000000, ',[],[]]')");
    last = m.acquire().fence();
  }
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_records")), "0");
  auto s = open();
  holdfast::mutex m{s, "another"};
  EXPECT_GT(m.acquire().fence(), last);
}

// Recorded as free, and then an election's: the sweep finds out by itself.
TEST_F(mariadb_store, a_name_that_became_an_elections_is_not_swept) {
  {
    auto s = open();
    (void)holdfast::mutex(s, "importer").acquire().release();
    ask("update " + table("holdfast_records") +
        " set version = version + 1, record = '[1,\"election\",0,7,[],[]]'");
  }
  EXPECT_EQ(ask("select name from " + table("holdfast_records")), "importer");
}

}  // namespace
}  // namespace mariadb_test
