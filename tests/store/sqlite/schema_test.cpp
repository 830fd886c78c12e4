#include <holdfast/holdfast.hpp>

#include "fixture.hpp"
#include "harness/failing.hpp"

namespace sqlite_test {
namespace {

class tables : public sqlite_store {
 protected:
  void put(const std::string& name, const std::string& record) {
    const session store = open(path());
    rule change = writes(record);
    ASSERT_TRUE(store->transact(name, change).ok());
  }
  /// As if the machine had been restarted, `seconds` of its old boot clock ago.
  void pretend_reboot(long seconds) {
    shell{path()}.run(
        "UPDATE holdfast_meta SET value = 'another boot' WHERE key = 'boot_id';"
        "UPDATE holdfast_meta SET value = value - " +
        std::to_string(seconds) + " * 1000000 WHERE key = 'wall_minus_boot_us'");
  }
  static long now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               holdfast::boot_clock::now().time_since_epoch())
        .count();
  }
};

const std::string owner = "0123456789abcdef0123456789abcdef";

std::string holder(long expires_at) {
  return "[\"" + owner + "\",1,77," + std::to_string(expires_at) +
         ",1700000000000000,\"peer\",\"host 4711 program the nightly run\",1]";
}

std::string waiter(long expires_at) {
  return "[\"" + owner + "\",2,0,30000000," + std::to_string(expires_at) +
         ",1700000001000000,\"peer\",\"host 4712 other\",0]";
}

TEST_F(tables, a_shell_shows_the_holders) {
  put("order:1", "[1,\"mutex\",1,77,[" + holder(now_us() + 100'000'000) + "],[]]");
  shell look{path()};
  EXPECT_EQ(
      look.ask_one("SELECT name, kind, id, host, pid, program, reason, weight, fence, "
                   "since_utc FROM holdfast_holders"),
      "order:1|mutex|01234567|host|4711|program|the nightly run|1|315392|2023-11-14 22:13:20");
  const double left = std::stod(look.ask_one("SELECT expires_in_s FROM holdfast_holders"));
  EXPECT_GT(left, 0);
  EXPECT_LT(left, 102);
  EXPECT_TRUE(look.ask("SELECT * FROM holdfast_waiters").empty());
}

TEST_F(tables, a_shell_shows_the_waiters_in_the_order_of_service) {
  put("order:1",
      "[1,\"semaphore\",2,77,[" + holder(1) + "],[" + waiter(2) + "," + waiter(3) + "]]");
  put("gate", "[1,\"latch\",3,2,5,[],[" + waiter(2) + "]]");
  shell look{path()};
  const auto rows = look.ask(
      "SELECT name, kind, place, host, pid, program, reason, weight "
      "FROM holdfast_waiters ORDER BY name, place");
  EXPECT_EQ(rows, (std::vector<std::string>{"gate|latch|1|host|4712|other||2",
                                            "order:1|semaphore|1|host|4712|other||2",
                                            "order:1|semaphore|2|host|4712|other||2"}));
  EXPECT_EQ(look.ask_one("SELECT * FROM holdfast_latches"), "gate|3|2|1");
}

TEST_F(tables, whole_owner_ids_are_not_in_the_views) {
  put("order:1", "[1,\"mutex\",1,77,[" + holder(1) + "],[" + waiter(2) + "]]");
  shell look{path()};
  for (const char* view : {"holdfast_holders", "holdfast_waiters", "holdfast_participants"}) {
    const auto rows = look.ask(std::string{"SELECT * FROM "} + view);
    EXPECT_FALSE(rows.empty()) << view;
    for (const auto& row : rows) EXPECT_EQ(row.find(owner), std::string::npos) << row;
  }
}

TEST_F(tables, the_views_survive_records_of_another_program) {
  const session store = open(path());
  shell look{path()};
  for (const char* text :
       {"their note", "", "{}", "[]", "[9,\"mutex\",1]", "[1,\"mutex\"]", "null",
        "[1,\"mutex\",1,1,[1,[]],[{}]]", "[1,\"mutex\",1,1,[[\"x\",1,1,1,1,1,1]],7]"}) {
    look.run(std::string{"INSERT INTO holdfast_locks VALUES ('"} + text + "', '" + text + "')");
  }
  for (const char* view : {"holdfast_holders", "holdfast_waiters", "holdfast_latches"}) {
    EXPECT_NO_THROW(look.ask(std::string{"SELECT * FROM "} + view)) << view;
  }
}

TEST_F(tables, one_row_that_cannot_be_read_hides_no_other_name) {
  auto s = holdfast::open("sqlite:" + path());
  holdfast::mutex m{s, "good"};
  const auto held = m.acquire();
  shell{path()}.run(
      R"(INSERT INTO holdfast_locks VALUES ('damaged', '[1,"mutex",1'), ('foreign', 'mine'),
         ('newer', '[2,"mutex",0,0,[],[]]'), (CAST(x'6f64640a' AS TEXT), '?'))");
  EXPECT_EQ(s.names().size(), 5U);
  EXPECT_EQ(s.show("good").holders.size(), 1U);
  const auto reason = [&](const char* name) {
    return harness::outcome_of([&] { (void)s.show(name); }).reason;
  };
  EXPECT_EQ(reason("damaged"), errc::corrupt);
  EXPECT_EQ(reason("newer"), errc::newer_format);
  EXPECT_EQ(reason("foreign"), errc::foreign_data);
}

TEST_F(tables, a_note_without_reason_or_words_breaks_no_view) {
  const session store = open(path());
  shell look{path()};
  for (const char* note : {"", "host", "host 1", "host 1 program"}) {
    look.run(std::string{"INSERT INTO holdfast_locks VALUES ('"} + note +
             "', '[1,\"mutex\",1,1,[[\"x\",1,1,1,1,\"p\",\"" + note + "\"]],[]]')");
  }
  EXPECT_EQ(look.ask("SELECT host, program, reason FROM holdfast_holders ORDER BY name"),
            (std::vector<std::string>{"||", "host||", "host||", "host|program|"}));
}

// A step whose change was skipped, or undone, is no grant. SQLite reports one that was undone as
// carried out.
TEST_F(tables, triggers_in_the_file_do_not_run) {
  const session store = open(path());
  rule change = increments();
  ASSERT_TRUE(store->transact("name", change).ok());
  std::int64_t number = 1;
  for (const std::string trigger :
       {"BEFORE UPDATE ON holdfast_locks BEGIN SELECT RAISE(IGNORE); END",
        "BEFORE INSERT ON holdfast_locks BEGIN SELECT RAISE(IGNORE); END",
        "AFTER UPDATE ON holdfast_locks BEGIN UPDATE holdfast_locks SET record = old.record WHERE "
        "name = new.name; END",
        "AFTER UPDATE ON holdfast_locks BEGIN DELETE FROM holdfast_locks WHERE "
        "holdfast_decide(name, 0); END"}) {
    shell{path()}.run("CREATE TRIGGER strange " + trigger);
    const session opened_after = open(path());
    for (const auto* each : {&store, &opened_after}) {
      EXPECT_TRUE((*each)->transact("name", change).ok()) << trigger;
      EXPECT_EQ(number_of(**each, "name"), ++number) << trigger;
    }
    rule first = increments();
    EXPECT_TRUE(store->transact("new " + std::to_string(number), first).ok()) << trigger;
    shell{path()}.run("DROP TRIGGER strange");
  }
}

TEST_F(tables, a_reboot_strikes_out_holders_and_waiters_and_keeps_the_fences) {
  const long later = now_us() + 1'000'000'000'000;
  put("order:1", "[1,\"mutex\",1,77,[" + holder(later) + "],[" + waiter(later) + "]]");
  pretend_reboot(1000);
  EXPECT_EQ(record_of(*open(path()), "order:1"), "[1,\"mutex\",0,77,[],[]]");
}

TEST_F(tables, a_reboot_keeps_latches_for_their_remaining_time) {
  const long later = now_us() + 5'000'000'000;
  put("gate", "[1,\"latch\",3,2," + std::to_string(later) + ",[[\"" + owner + "\",5]],[" +
                  waiter(later) + "]]");
  pretend_reboot(1000);
  const std::string found = record_of(*open(path()), "gate");
  EXPECT_TRUE(found.starts_with("[1,\"latch\",3,2,")) << found;
  EXPECT_TRUE(found.ends_with(",[],[]]")) << found;
  const long expires_at = std::stol(found.substr(15));
  EXPECT_NEAR(static_cast<double>(expires_at), static_cast<double>(later - 1'000'000'000), 2e6);
}

TEST_F(tables, a_reboot_with_a_wrong_clock_keeps_latches_for_a_month_at_most) {
  put("gate", "[1,\"latch\",3,2," + std::to_string(now_us() + 500'000'000) + ",[],[]]");
  pretend_reboot(-4'000'000'000);
  const long expires_at = std::stol(record_of(*open(path()), "gate").substr(15));
  EXPECT_LE(expires_at, now_us() + 31L * 86'400 * 1'000'000);
}

// The buckets are on the clock of the boot before, as the latches are.
TEST_F(tables, a_reboot_keeps_used_tokens_and_refills_those_due_since) {
  const long before = now_us() + 900'000'000;
  const std::string used_at = ",1,1,1,1,3600000000,3600000000," + std::to_string(before);
  put("limit", "[1,\"rate_limiter\",2,0,[],[],[[\"a%3A\"" + used_at + "],[\"b\"" + used_at + "," +
                   std::to_string(before + 200'000'000) + "]],[[\"" + owner + "\",5]]]");
  pretend_reboot(1000);
  {
    const auto s = holdfast::open("sqlite:" + path());
    EXPECT_EQ(s.names(), std::vector<std::string>{"limit"}) << "it is in use";
  }
  shell look{path()};
  const auto number = [&](const char* at) {
    return std::stod(
        look.ask(std::string("SELECT json_extract(record, '") + at + "') FROM holdfast_locks")
            .at(0));
  };
  EXPECT_NEAR(number("$[6][0][7]"), static_cast<double>(before - 1'000'000'000), 5e6);
  EXPECT_NEAR(number("$[6][1][8]"), static_cast<double>(before - 800'000'000), 5e6);
  EXPECT_EQ(look.ask("SELECT json_extract(record, '$[6][0][0]') FROM holdfast_locks"),
            std::vector<std::string>{"a%3A"});
}

TEST_F(tables, a_reboot_with_a_wrong_clock_stops_no_limiter) {
  put("limit", "[1,\"rate_limiter\",1,0,[],[],[[\"0\",0,1,1,1,1000,1000," +
                   std::to_string(now_us() + 500'000'000) + "]],[]]");
  pretend_reboot(-4'000'000'000);
  const auto s = holdfast::open("sqlite:" + path());
  holdfast::rate_limiter limiter{
      s, "limit", {{.tokens = 1, .per = std::chrono::microseconds(1), .burst = 1'000}}};
  EXPECT_TRUE(limiter.take(1'000));
}

TEST_F(tables, names_used_only_by_requests_for_several_leave_no_rows) {
  const auto s = holdfast::open("sqlite:" + path());
  for (int i = 0; i < 150; ++i) {
    const std::string n = std::to_string(i);
    holdfast::mutex first{s, "first " + n}, second{s, "second " + n};
    (void)holdfast::multi_lock{first, second}.acquire();
  }
  const auto rows = std::stoi(shell{path()}.ask("SELECT count(*) FROM holdfast_locks").at(0));
  EXPECT_LT(rows, 300);
}

TEST_F(tables, a_reboot_does_not_change_data_of_others) {
  put("theirs", "their note");
  put("newer", "[2,\"mutex\",1]");
  const char* const damaged[] = {"[1,\"rate_limiter\",1,0,[],[],[\"x\"],[]]",
                                 "[1,\"rate_limiter\",1,0,[],[],\"x\",[]]",
                                 "[1,\"rate_limiter\",1,0,[],[],[{\"k\":\"x\"}],[]]"};
  for (const char* const record : damaged) put(record, record);
  pretend_reboot(1000);
  const session store = open(path());
  for (const char* const record : damaged) EXPECT_EQ(record_of(*store, record), record);
  EXPECT_EQ(record_of(*store, "theirs"), "their note");
  EXPECT_EQ(record_of(*store, "newer"), "[2,\"mutex\",1]");
}

TEST_F(tables, holders_and_waiters_stay_without_a_reboot) {
  const std::string record = "[1,\"mutex\",1,77,[" + holder(now_us() + 1'000'000) + "],[]]";
  put("order:1", record);
  EXPECT_EQ(record_of(*open(path()), "order:1"), record);
}

}  // namespace
}  // namespace sqlite_test
