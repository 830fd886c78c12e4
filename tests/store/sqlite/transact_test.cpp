#include <atomic>
#include <holdfast/holdfast.hpp>
#include <stdexcept>
#include <thread>

#include "fixture.hpp"
#include "harness/process.hpp"

namespace sqlite_test {
namespace {

class transactions : public sqlite_store {};

long an_hour_from_now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             (std::chrono::system_clock::now() + std::chrono::hours(1)).time_since_epoch())
      .count();
}

TEST_F(transactions, a_session_reads_the_writes_of_another) {
  const session one = open(path());
  const session other = open(path());
  rule change = writes("text");
  ASSERT_TRUE(one->transact("name", change).ok());
  EXPECT_EQ(change.seen, "");
  EXPECT_EQ(record_of(*other, "name"), "text");
}

TEST_F(transactions, a_record_outlives_its_session) {
  rule change = writes("text");
  ASSERT_TRUE(open(path())->transact("name", change).ok());
  EXPECT_EQ(record_of(*open(path()), "name"), "text");
}

TEST_F(transactions, a_transition_without_a_result_changes_nothing) {
  const session store = open(path());
  rule write = writes("before");
  ASSERT_TRUE(store->transact("name", write).ok());
  rule read = reads();
  ASSERT_TRUE(store->transact("name", read).ok());
  ASSERT_TRUE(store->transact("never used", read).ok());
  EXPECT_EQ(record_of(*store, "name"), "before");
  EXPECT_EQ(shell(path()).ask_one("SELECT count(*) FROM holdfast_locks"), "1");
}

// Another program has a write transaction open and does not end it.
TEST_F(transactions, that_only_ask_wait_for_no_writer) {
  sqlite_options impatient;
  impatient.path = path();
  impatient.busy_timeout = std::chrono::milliseconds(20);
  const session store = open(impatient);
  rule write = writes("before");
  ASSERT_TRUE(store->transact("name", write).ok());
  shell other{path()};
  other.run("BEGIN IMMEDIATE");
  other.run("UPDATE holdfast_locks SET record = 'not yet' WHERE name = 'name'");
  rule question = reads();
  question.asks = true;
  const auto answered = store->transact("name", question);
  EXPECT_TRUE(answered.ok()) << answered.error().what;
  EXPECT_EQ(question.seen, "before");
  EXPECT_TRUE(store->transact("never used", question).ok());
  EXPECT_EQ(question.seen, "");
  EXPECT_EQ(question.calls, 2) << "one for each";
  rule another = reads();
  another.asks = true;
  const std::vector<state_store::step> steps{{"name", &question}, {"never used", &another}};
  for (const auto& each : store->transact(steps)) EXPECT_TRUE(each.ok()) << each.error().what;
  EXPECT_EQ(question.seen, "before");
  EXPECT_EQ(another.seen, "");
}

TEST_F(transactions, that_ask_and_have_to_write_all_the_same_write) {
  const session store = open(path());
  rule write = increments();
  write.asks = true;
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(store->transact("name", write).ok());
  EXPECT_EQ(number_of(*store, "name"), 3);
  rule question = reads();
  question.asks = true;
  const std::vector<state_store::step> steps{{"other", &question}, {"name", &write}};
  for (const auto& each : store->transact(steps)) EXPECT_TRUE(each.ok());
  EXPECT_EQ(number_of(*store, "name"), 4);
}

TEST_F(transactions, that_only_ask_see_no_earlier_time_than_the_greatest_fence) {
  const session store = open(path());
  const auto later = std::to_string(an_hour_from_now_us());
  shell{path()}.run("UPDATE holdfast_meta SET value = " + later + " WHERE key = 'fence_floor'");
  rule question = reads();
  question.asks = true;
  ASSERT_TRUE(store->transact("never used", question).ok());
  EXPECT_EQ(std::to_string(question.at.wall_at), later);
}

TEST_F(transactions, an_empty_record_counts_as_no_record) {
  const session store = open(path());
  for (const char* text : {"something", "", "again", ""}) {
    rule change = writes(text);
    ASSERT_TRUE(store->transact("name", change).ok());
    EXPECT_EQ(record_of(*store, "name"), text);
  }
  const auto entries = store->entries();
  ASSERT_TRUE(entries.ok());
  EXPECT_TRUE(entries->empty());
}

TEST_F(transactions, entries_are_all_names_with_their_records) {
  const session store = open(path());
  for (const char* name : {"b", "a", "c"}) {
    rule change = writes(std::string{"of "} + name);
    ASSERT_TRUE(store->transact(name, change).ok());
  }
  const auto entries = store->entries();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[0].record, "of a");
  EXPECT_EQ((*entries)[2].name, "c");
}

TEST_F(transactions, names_and_records_come_back_byte_for_byte) {
  const session store = open(path());
  const std::vector<std::string> odd{"it's",
                                     "\"; DROP TABLE holdfast_locks; --",
                                     "%s%n",
                                     "ÄΩ🔒",
                                     "[1,2]",
                                     "a b",
                                     std::string(255, 'x'),
                                     "NAME",
                                     "name"};
  for (const auto& name : odd) {
    rule change = writes(name + "!");
    ASSERT_TRUE(store->transact(name, change).ok());
  }
  for (const auto& name : odd) EXPECT_EQ(record_of(*store, name), name + "!");
}

TEST_F(transactions, a_record_of_a_megabyte_is_kept_whole) {
  const session store = open(path());
  std::string big(1 << 20, 'x');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>('a' + i % 26);
  rule change = writes(big);
  ASSERT_TRUE(store->transact("name", change).ok());
  EXPECT_EQ(record_of(*store, "name"), big);
}

TEST_F(transactions, an_exception_in_the_transition_reaches_the_caller_and_changes_nothing) {
  const session store = open(path());
  rule before = writes("before");
  ASSERT_TRUE(store->transact("name", before).ok());
  rule bad{[](const std::string&, std::string&) -> const std::string* {
    throw std::runtime_error("out of luck");
  }};
  EXPECT_THROW((void)store->transact("name", bad), std::runtime_error);
  EXPECT_THROW((void)store->transact("other", bad), std::runtime_error);
  EXPECT_EQ(record_of(*store, "name"), "before");
}

TEST_F(transactions, store_time_is_the_boot_clock_and_never_goes_back) {
  const session store = open(path());
  const auto micros = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               holdfast::boot_clock::now().time_since_epoch())
        .count();
  };
  auto last = micros();
  for (int i = 0; i < 1000; ++i) {
    rule look = reads();
    ASSERT_TRUE(store->transact("name", look).ok());
    EXPECT_GE(look.at.now_at, last);
    last = look.at.now_at;
  }
  EXPECT_LE(last, micros());
}

TEST_F(transactions, several_steps_are_one_transaction) {
  const session store = open(path());
  const session other = open(path());
  rule one = increments();
  rule two = increments();
  rule again = increments();
  const std::vector<state_store::step> steps{{"one", &one}, {"two", &two}, {"one", &again}};
  for (const auto& each : store->transact(steps)) EXPECT_TRUE(each.ok());
  EXPECT_EQ(number_of(*other, "one"), 2);
  EXPECT_EQ(number_of(*other, "two"), 1);
}

TEST_F(transactions, if_one_of_several_steps_throws_no_step_is_carried_out) {
  const session store = open(path());
  rule good = increments();
  rule bad{[](const std::string&, std::string&) -> const std::string* {
    throw std::runtime_error("out of luck");
  }};
  const std::vector<state_store::step> steps{{"one", &good}, {"two", &bad}};
  EXPECT_THROW((void)store->transact(steps), std::runtime_error);
  EXPECT_EQ(record_of(*store, "one"), "");
  EXPECT_TRUE(store->transact("one", good).ok());
}

TEST_F(transactions, no_steps_are_no_statuses) {
  EXPECT_TRUE(open(path())->transact(std::span<const state_store::step>{}).empty());
}

// ---- from everywhere at once

constexpr int threads = 4;
constexpr int processes = 3;
constexpr int rounds = 400;

void count_from_all_threads(state_store& store) {
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&store, t] {
      for (int i = 0; i < rounds; ++i) {
        rule shared = increments();
        rule own = increments();
        const std::string name = "thread " + std::to_string(t);
        const std::vector<state_store::step> steps{{"shared", &shared}, {name, &own}};
        const bool together = i % 4 == 0;
        if (together) {
          for (const auto& each : store.transact(steps)) ASSERT_TRUE(each.ok());
        } else {
          ASSERT_TRUE(store.transact("shared", shared).ok());
          ASSERT_TRUE(store.transact(name, own).ok());
        }
      }
    });
  }
}

const harness::role counter{"counter", [](const auto& args) {
                              const session store = open(args.at(0));
                              harness::say("ready");
                              harness::hear();
                              count_from_all_threads(*store);
                              return testing::Test::HasFailure() ? 1 : 0;
                            }};

TEST_F(transactions, increments_of_many_threads_and_processes_are_all_counted) {
  const session store = open(path());
  std::vector<harness::child> others;
  for (int p = 0; p < processes; ++p) others.emplace_back("counter", std::vector{path()});
  for (auto& each : others) EXPECT_EQ(each.expect_line(), "ready");
  for (auto& each : others) each.tell("go");
  count_from_all_threads(*store);
  for (auto& each : others) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(number_of(*store, "shared"), (processes + 1) * threads * rounds);
  for (int t = 0; t < threads; ++t) {
    EXPECT_EQ(number_of(*store, "thread " + std::to_string(t)), (processes + 1) * rounds);
  }
}

TEST_F(transactions, sessions_of_one_process_on_one_file_do_not_disturb_each_other) {
  std::vector<session> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(open(path()));
  {
    std::vector<std::jthread> all;
    for (auto& each : sessions) all.emplace_back([&each] { count_from_all_threads(*each); });
  }
  EXPECT_EQ(number_of(*sessions.front(), "shared"), 4 * threads * rounds);
}

// ---- rows that nobody needs

constexpr const char* free_record = "[1,\"mutex\",0,1700000000000000,[],[]]";

TEST_F(transactions, rows_of_unused_names_do_not_pile_up) {
  const session store = open(path());
  for (int i = 0; i < 2000; ++i) {
    rule change = writes(free_record);
    ASSERT_TRUE(store->transact("name " + std::to_string(i), change).ok());
  }
  EXPECT_LT(std::stoi(shell(path()).ask_one("SELECT count(*) FROM holdfast_locks")), 300);
}

TEST_F(transactions, a_session_that_closes_leaves_no_unused_row) {
  rule change = writes(free_record);
  rule used = writes("[1,\"mutex\",1,5,[],[[]]]");
  {
    const session store = open(path());
    ASSERT_TRUE(store->transact("unused", change).ok());
    ASSERT_TRUE(store->transact("used", used).ok());
  }
  EXPECT_EQ(shell(path()).ask_one("SELECT name FROM holdfast_locks"), "used");
}

TEST_F(transactions, a_past_leader_is_remembered_when_the_name_is_unused) {
  rule led = writes("[1,\"election\",0,7,[],[],[[7,7,\"note\"]]]");
  ASSERT_TRUE(open(path())->transact("importer", led).ok());
  EXPECT_EQ(shell(path()).ask_one("SELECT name FROM holdfast_locks"), "importer");
}

// Recorded as free, and then an election's: the sweep finds out by itself.
TEST_F(transactions, a_name_that_became_an_elections_is_not_swept) {
  rule change = writes(free_record);
  {
    const session store = open(path());
    ASSERT_TRUE(store->transact("importer", change).ok());
    shell{path()}.run("UPDATE holdfast_locks SET record = '[1,\"election\",0,7,[],[]]'");
  }
  EXPECT_EQ(shell(path()).ask_one("SELECT name FROM holdfast_locks"), "importer");
}

TEST_F(transactions, a_name_whose_row_was_removed_starts_above_its_last_fence) {
  const long last = an_hour_from_now_us();  // as if the clock had been set back since
  rule change = writes("[1,\"mutex\",0," + std::to_string(last) + ",[],[]]");
  ASSERT_TRUE(open(path())->transact("name", change).ok());
  const session store = open(path());
  rule look = reads();
  ASSERT_TRUE(store->transact("name", look).ok());
  EXPECT_EQ(look.seen, "");
  EXPECT_GT(look.at.wall_at, last);
}

// The row may be a latch's meanwhile, or be empty.
TEST_F(transactions, a_record_without_a_fence_is_changed_above_the_last_one_of_all_names) {
  const long last = an_hour_from_now_us();
  for (const std::string record :
       {"", "[1,\"latch\",2,1,9,[],[]]", "[1,\"rate_limiter\",0,0,[],[],[],[]]"}) {
    const session store = open(path());
    rule change = writes(free_record);
    ASSERT_TRUE(store->transact("name", change).ok());
    shell db{path()};
    db.run("UPDATE holdfast_locks SET record = '" + record + "'");
    db.run("UPDATE holdfast_meta SET value = " + std::to_string(last) +
           " WHERE key = 'fence_floor'");
    rule look = reads();
    ASSERT_TRUE(store->transact("name", look).ok());
    EXPECT_EQ(look.seen, record);
    EXPECT_GE(look.at.wall_at, last) << record;
  }
}

TEST_F(transactions, unused_rows_of_a_killed_session_are_removed_by_a_listing) {
  const session store = open(path());
  shell{path()}.run("INSERT INTO holdfast_locks VALUES ('left', '[1,\"mutex\",0,5,[],[]]')");
  ASSERT_TRUE(store->entries().ok());
  const session other = open(path());
  shell look{path()};
  EXPECT_EQ(look.ask("SELECT name FROM holdfast_locks").size(), 1u);
}

// A repeated request finds the original there.
TEST_F(transactions, remembered_rows_are_not_removed) {
  const session store = open(path());
  shell{path()}.run(
      "INSERT INTO holdfast_locks VALUES "
      "('limit', '[1,\"rate_limiter\",0,7,[],[],[],[[\"0a\",9]]]'), "
      "('latch', '[1,\"latch\",0,0,0,[[\"0a\",9]],[]]')");
  ASSERT_TRUE(store->entries().ok());
  const session other = open(path());
  EXPECT_EQ(shell{path()}.ask("SELECT name FROM holdfast_locks").size(), 2u);
}

TEST_F(transactions, a_listing_continues_after_a_given_name) {
  const session store = open(path());
  for (const char* const name : {"a", "b", "c"}) {
    rule change = writes(name);
    ASSERT_TRUE(store->transact(name, change).ok());
  }
  const auto some = store->walk("a", 1).value();
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(some[0].name, "b");
  EXPECT_EQ(store->walk("", 9).value().size(), 3u);
  EXPECT_TRUE(store->walk("c", 9).value().empty());
}

// Sessions that make no names do not scan the store.
TEST_F(transactions, expired_records_are_removed_when_names_are_made) {
  {
    const session store = open(path());
    shell{path()}.run(
        "INSERT INTO holdfast_locks VALUES ('latch', '[1,\"latch\",2,1,9,[],[]]'), "
        "('dead', '[1,\"mutex\",1,77,[[\"0123456789abcdef0123456789abcdef\",1,77,9,9,\"p\",\"\",1]]"
        ",[]]'), ('limit', '[1,\"rate_limiter\",1,0,[],[],[[\"0\",0,1,1,1,10,5,9]],[]]')");
  }
  {
    auto s = holdfast::open("sqlite:" + path());
    for (int i = 0; i < 512; ++i) {
      const auto held = holdfast::mutex(s, "m" + std::to_string(i)).acquire();
    }
  }
  shell look{path()};
  EXPECT_EQ(look.ask_one("SELECT count(*) FROM holdfast_locks"), "0");
  EXPECT_GT(std::stol(look.ask_one("SELECT value FROM holdfast_meta WHERE key = 'fence_floor'")),
            77);
}

}  // namespace
}  // namespace sqlite_test
