#include <algorithm>
#include <thread>

#include "fixture.hpp"
#include "harness/least_rights.hpp"

// The tables: what people see in them, who may use them, and how the library treats other programs'
// tables.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::errc;

TEST_F(postgres_store, select_from_holdfast_locks_tells_the_holders) {
  auto s = open();
  holdfast::lock_options o;
  o.reason = "invoices of May";
  o.lease = 60s;
  holdfast::mutex m{s, "billing", o};
  const auto held = m.acquire();
  const auto shows = [&](const std::string& column) {
    return ask("select " + column + " from " + table("holdfast_locks") + " where name = 'billing'");
  };
  EXPECT_EQ(shows("kind"), "mutex");
  EXPECT_EQ(shows("pid"), std::to_string(::getpid()));
  EXPECT_EQ(shows("reason"), "invoices of May");
  EXPECT_EQ(shows("fence"), std::to_string(held.fence()));
  EXPECT_EQ(shows("length(holder)"), "8");
  EXPECT_NE(shows("host"), "");
  EXPECT_EQ(shows("holders || ' ' || waiters"), "1 0");
  EXPECT_EQ(shows("since between now() - interval '5 min' and now()"), "t");
  EXPECT_EQ(shows("expires - now() between interval '0' and interval '60 s'"), "t");
  EXPECT_NE(shows("version"), "");
}

TEST_F(postgres_store, the_views_show_waiters_and_latches_and_omit_free_names) {
  auto a = open(), b = open();
  holdfast::mutex free{a, "free"};
  free.lock(), free.unlock();
  holdfast::latch local_queue{a, "gate", 3};
  local_queue.count_down();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  first.lock();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  eventually("a waiter in the view", [&] {
    return ask("select pid from " + table("holdfast_waiters") +
               " where name = 'm' and place = 1") == std::to_string(::getpid());
  });
  EXPECT_EQ(
      ask("select string_agg(name || ' ' || kind || ' ' || waiters, ', ' order by name) from " +
          table("holdfast_locks")),
      "gate latch 0, m mutex 1");
  first.unlock();
  waiter.join();
}

TEST_F(postgres_store, names_that_differ_in_case_quotes_or_letters_are_different_locks) {
  auto s = open();
  std::vector<std::unique_ptr<holdfast::mutex>> all;
  for (const char* name : {"order", "Order", "order ", "o'rder", "o\"rder", "o\\rder", "o{}rder",
                           "o,rder", "%s", "ördér", "\xf0\x9f\x94\x92", "null"}) {
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

TEST_F(postgres_store, programs_that_make_the_tables_at_the_same_moment_all_succeed) {
  std::vector<std::thread> all;
  std::atomic<int> opened{0};
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&] {
      EXPECT_EQ(outcome_of([&] { (void)open(); }).text, "");
      ++opened;
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(opened, 8);
}

TEST_F(postgres_store, a_schema_may_have_any_name) {
  const std::string odd = schema_ + " \"x\" 'y'";
  {
    auto s = holdfast::open(base_ + "?schema=" + odd);
    holdfast::mutex m{s, "m"};
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  }
  ask("drop schema \"" + schema_ + " \"\"x\"\" 'y'\" cascade");
}

TEST_F(postgres_store, a_user_that_may_not_make_tables_gets_the_statements_and_needs_no_more) {
  const auto refused = harness::outcome_of_opening(url_of_user());
  EXPECT_EQ(refused.reason, errc::not_permitted);
  auto script = refused.text.substr(refused.text.find("create schema"));
  script.resize(script.rfind(';') + 1);
  for (std::size_t at; (at = script.find(" to app;")) != script.npos;) {
    script.replace(at, 8, " to " + user_ + ";");
  }
  ask(script);
  auto s = holdfast::open(url_of_user()), other = holdfast::open(url_of_user());
  holdfast::mutex m{s, "m"}, rival{other, "m"};
  m.lock();
  std::thread waiter([&] { rival.lock(), rival.unlock(); });
  eventually("a waiter", [&] { return s.show("m").waiters.size() == 1; });
  m.unlock();
  waiter.join();
  holdfast::latch l{s, "l", 1};
  l.count_down();
  EXPECT_EQ(s.names().size(), 1U);
}

TEST_F(postgres_store, each_documented_right_is_needed_and_its_lack_is_reported) {
  (void)open();
  const auto all = harness::each_right_on_page("postgres");
  const auto give = [&](const harness::right& r) {
    const bool schema = r.object.starts_with("schema ");
    ask("grant " + r.privilege + " on " +
        (schema ? "schema \"" + schema_ + "\"" : table(r.object)) + " to " + user_);
  };
  const auto give_all_but = [&](std::size_t missing) {
    const auto in_schema = "schema \"" + schema_ + "\" from " + user_;
    ask("revoke all on all tables in " + in_schema + "; revoke all on " + in_schema);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i != missing) give(all[i]);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    give_all_but(i);
    const auto o =
        outcome_of([&] { harness::use_everything(url_of_user(), "n" + std::to_string(i)); });
    EXPECT_EQ(o.reason, errc::not_permitted)
        << "without " << all[i].privilege << " on " << all[i].object << ": " << o.text;
  }
  give_all_but(all.size());
  EXPECT_EQ(outcome_of([&] { harness::use_everything(url_of_user(), "whole"); }).text, "");
}

TEST_F(postgres_store, a_missing_right_of_which_no_error_tells_is_among_the_facts) {
  (void)open();
  ask("grant usage on schema \"" + schema_ + "\" to " + user_ +
      "; grant select, insert, update on " + table("holdfast_records") + " to " + user_ +
      "; grant select, update on " + table("holdfast_meta") + " to " + user_);
  const auto missing = [&] {
    std::vector<std::string> all;
    for (const auto& f : holdfast::open(url_of_user()).facts())
      if (f.name == "missing_right") all.push_back(f.value);
    return all;
  };
  EXPECT_EQ(missing(), std::vector<std::string>{"delete on holdfast_records"});
  ask("grant delete on " + table("holdfast_records") + " to " + user_);
  EXPECT_EQ(missing(), std::vector<std::string>{});
}

TEST_F(postgres_store, a_user_without_rights_to_the_tables_is_not_permitted) {
  (void)open();
  ask("grant usage on schema \"" + schema_ + "\" to " + user_ +
      "; grant select on all tables in schema \"" + schema_ + "\" to " + user_);
  auto s = holdfast::open(url_of_user());
  holdfast::mutex m{s, "m"};
  const auto refused = outcome_of([&] { m.lock(); });
  EXPECT_EQ(refused.reason, errc::not_permitted);
  EXPECT_TRUE(contains(refused.text, "docs/stores/postgres.md")) << refused.text;
}

TEST_F(postgres_store, tables_of_a_newer_holdfast_are_left_alone) {
  auto before = open();
  ask("update " + table("holdfast_meta") + " set format = 2");
  EXPECT_EQ(outcome_of([&] { (void)open(); }).reason, errc::newer_format);
  holdfast::mutex m{before, "m"};
  EXPECT_EQ(outcome_of([&] { m.lock(); }).reason, errc::newer_format);
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_records")), "0");
}

TEST_F(postgres_store, tables_that_were_altered_are_foreign_data) {
  (void)open();
  ask("drop view " + table("holdfast_locks") + "; alter table " + table("holdfast_records") +
      " alter version type numeric");
  EXPECT_EQ(outcome_of([&] { (void)open(); }).reason, errc::foreign_data);
}

TEST_F(postgres_store, tables_that_are_altered_while_in_use_are_foreign_data) {
  auto s = impatient();
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  ask("alter table " + table("holdfast_records") + " rename version to revision");
  EXPECT_EQ(outcome_of([&] { m.lock(); }).reason, errc::foreign_data);
  ask("alter table " + table("holdfast_records") + " rename revision to version");
  EXPECT_TRUE(m.try_lock());
  m.unlock();
  ask("drop view " + table("holdfast_locks") + ", " + table("holdfast_waiters") + "; drop table " +
      table("holdfast_records"));
  const auto missing = outcome_of([&] { m.lock(); });
  EXPECT_EQ(missing.reason, errc::foreign_data);
  EXPECT_TRUE(contains(missing.text, "drop what is left")) << missing.text;
  EXPECT_EQ(outcome_of([&] { (void)open(); }).reason, errc::foreign_data);
  ask("drop table " + table("holdfast_meta"));
  (void)open();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST_F(postgres_store, a_row_of_another_program_is_left_as_it_is) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  const auto put = [&](const std::string& record) {
    ask("insert into " + table("holdfast_records") + " values ('m', 1, '" + record +
        "') on conflict (name) do update set version = 1, record = excluded.record");
  };
  const auto reason = [&](const std::string& record) {
    put(record);
    const auto failed = outcome_of([&] { (void)m.try_lock(); });
    EXPECT_EQ(ask("select record from " + table("holdfast_records")), record);
    return failed.reason;
  };
  EXPECT_EQ(reason(R"({"mine": 1})"), errc::foreign_data);
  EXPECT_EQ(reason(R"([1,"mutex",1])"), errc::corrupt);
  EXPECT_EQ(reason(R"([2,"mutex",0,0,[],[]])"), errc::newer_format);
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_waiters")), "0");
}

TEST_F(postgres_store, one_row_that_cannot_be_read_hides_no_other_name) {
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
TEST_F(postgres_store, one_row_that_cannot_be_read_keeps_no_other_from_being_swept) {
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

TEST_F(postgres_store, a_name_that_was_removed_leaves_its_fence_behind_as_a_floor) {
  std::uint64_t last = 0;
  {
    auto s = open();
    holdfast::mutex m{s, "m"};
    // An hour ahead of the server's clock.
    m.lock(), m.unlock();
    ask("update " + table("holdfast_records") +
        R"( set version = version + 1, record = ('[1,"mutex",0,' ||
            (extract(epoch from now()) * 1e6)::bigint + 3600000000 || ',[],[]]')::json)");
    const auto held = m.acquire();
    last = held.fence();
  }
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_records")), "0");
  auto s = open();
  holdfast::mutex m{s, "another"};
  EXPECT_GT(m.acquire().fence(), last);
}

TEST_F(postgres_store, unused_names_are_removed_gradually) {
  auto s = open();
  for (int i = 0; i < 600; ++i) {
    holdfast::mutex m{s, "order:" + std::to_string(i)};
    m.lock(), m.unlock();
  }
  EXPECT_LE(std::stoi(ask("select count(*) from " + table("holdfast_records"))), 256);
}

// Recorded as free, and then an election's: the sweep finds out by itself.
TEST_F(postgres_store, a_name_that_became_an_elections_is_not_swept) {
  {
    auto s = open();
    (void)holdfast::mutex(s, "importer").acquire().release();
    ask("update " + table("holdfast_records") +
        " set version = version + 1, record = '[1,\"election\",0,7,[],[]]'");
  }
  EXPECT_EQ(ask("select name from " + table("holdfast_records")), "importer");
}

}  // namespace
}  // namespace postgres_test
