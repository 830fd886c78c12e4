#include <algorithm>
#include <fstream>
#include <holdfast/async.hpp>
#include <holdfast/mutex.hpp>
#include <string>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/memcached_server.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "tool/fixture.hpp"
#include "tool/notification_watch.hpp"

namespace tool_test {

namespace {

using nlohmann::json;

class doctor : public holdfast_tool {
 protected:
  json examined(words more = {}) const {
    more.insert(more.begin(), {"doctor", "--json"});
    return json::parse(tool(more).out);
  }

  /// The findings of a topic, as "level: message".
  static std::vector<std::string> of(const json& all, const std::string& topic) {
    std::vector<std::string> found;
    for (const auto& f : all["findings"])
      if (f["topic"] == topic)
        found.push_back(f["level"].get<std::string>() + ": " + f["message"].get<std::string>());
    return found;
  }

  static bool any(const std::vector<std::string>& all, const std::string& begins) {
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& one) { return one.starts_with(begins); });
  }

  const std::vector<std::string> not_notified{
      "warning: a waiter was not notified of the release: it learned of it by polling"};
};

}  // namespace

TEST_F(doctor, a_store_that_is_well_has_no_finding_and_nothing_is_left_there) {
  const json all = examined();
  EXPECT_EQ(all["schema"], 1);
  EXPECT_EQ(all["exit_code"], 0) << all;
  for (const auto* const topic :
       {"connection", "round trip", "rights", "clock", "notifications", "version", "names"}) {
    EXPECT_TRUE(any(of(all, topic), "ok: ")) << topic << " in " << all;
  }
  EXPECT_EQ(tool({"list"}).out.find("holdfast-doctor"), std::string::npos);
  EXPECT_EQ(tool({"doctor"}).code, 0);
}

TEST_F(doctor, for_people_each_finding_is_a_row_and_the_last_line_counts) {
  const auto said = tool({"doctor", store + "?synchronous=off"});
  EXPECT_EQ(said.code, 1) << said.out;
  EXPECT_NE(said.out.find("warning  persistence"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("→ ?synchronous=normal"), std::string::npos) << said.out;
  EXPECT_TRUE(said.out.ends_with("0 problems, 1 warning\n")) << said.out;
}

TEST_F(doctor, an_unavailable_store_exits_with_69_and_names_the_checks) {
  const auto said = tool({"doctor", "--json", "redis://127.0.0.1:1"});
  EXPECT_EQ(said.code, 69) << said.out << said.err;
  const json all = json::parse(said.out);
  EXPECT_EQ(all["findings"].size(), 1U);
  EXPECT_EQ(all["findings"][0]["topic"], "connection");
  EXPECT_EQ(all["findings"][0]["level"], "problem");
  EXPECT_FALSE(all["findings"][0]["remedy"].get<std::string>().empty());
}

TEST_F(doctor, a_url_that_cannot_be_is_64_and_two_stores_are_one_too_many) {
  EXPECT_EQ(tool({"doctor", "rediss:/x"}).code, 64);
  const auto two = tool({"doctor", "sqlite:a", "--store", "sqlite:b"});
  EXPECT_EQ(two.code, 64);
  EXPECT_NE(two.err.find("two stores"), std::string::npos) << two.err;
}

TEST_F(doctor, a_waiter_that_waits_too_long_is_named_with_its_blocker) {
  const holder blocks(*this, {"job"});
  program waiter(command({"run", "job", "--", "true"}), around);
  wait_for_waiter("job");
  const auto found = of(examined({"--stuck", "0"}), "stuck");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].starts_with("warning: job: the first of 1 waiter has waited for "))
      << found[0];
  EXPECT_NE(found[0].find("; held by "), std::string::npos) << found[0];
  EXPECT_EQ(examined()["exit_code"], 0) << "not yet, by default";
}

TEST_F(doctor, redis_that_drops_locks_is_78_with_the_command_that_ends_it) {
  harness::redis_server server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  const auto said = tool({"doctor", server.url()});
  EXPECT_EQ(said.code, 78) << said.out;
  EXPECT_NE(said.out.find("config set maxmemory-policy noeviction"), std::string::npos) << said.out;
  EXPECT_EQ(said.out.find("maxmemory-policy is"), said.out.rfind("maxmemory-policy is"))
      << "said once: " << said.out;
  server.ask({"config", "set", "maxmemory-policy", "noeviction"});
  server.ask({"config", "set", "appendonly", "yes"});
  const json well = examined({server.url()});
  EXPECT_EQ(well["exit_code"], 0) << well;
  EXPECT_TRUE(any(of(well, "version"), "ok: " + server.socket())) << "which server: " << well;
  EXPECT_TRUE(any(of(well, "notifications"), "ok: a waiter got the lock ")) << well;
}

// The server carries them out, and no replica acknowledges them.
TEST_F(doctor, probes_that_fail_leave_nothing_there) {
  harness::redis_server server;
  const json all = examined({server.url("?ack=1&ack_timeout=10ms")});
  EXPECT_TRUE(any(of(all, "rights"), "problem: latch ")) << all;
  EXPECT_EQ(tool({"list", "--store", server.url()}).out, "no names in use\n");
}

TEST_F(doctor, a_clock_that_differs_is_reported_with_amount_and_direction) {
  harness::redis_server server;
  for (const auto& [by, way] :
       {std::pair{std::chrono::hours(2), "ahead"}, {std::chrono::hours(-2), "behind"}}) {
    server.shift_clock(by);
    const json all = examined({server.url()});
    const auto clocks = of(all, "clock");
    ASSERT_EQ(clocks.size(), 1U) << all;
    EXPECT_TRUE(clocks[0].starts_with("warning: the store's clock is ")) << clocks[0];
    EXPECT_NE(clocks[0].find(way), std::string::npos) << clocks[0];
  }
}

TEST_F(doctor, a_store_that_a_file_names_is_judged_as_the_store_itself) {
  harness::redis_server server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  const std::string file = folder.file("store.url");
  std::ofstream(file) << server.url("?ack=1") << '\n';
  for (const auto& url : {"file:" + file, "file://" + file}) {
    const json all = examined({url});
    EXPECT_EQ(all["exit_code"], 78) << all;
    EXPECT_TRUE(any(of(all, "eviction"), "problem: ")) << all;
    EXPECT_TRUE(any(of(all, "replicas"), "problem: ")) << "?ack= is read there: " << all;
  }
}

TEST_F(doctor, warnings_of_the_library_are_shown_if_settings_cannot_be_judged) {
  const harness::redis_server server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  // A pipe: a second read of the URL finds nothing.
  const auto said = tool({"doctor", "--json", "file:/dev/stdin"}, server.url() + '\n');
  const json all = json::parse(said.out);
  EXPECT_TRUE(any(of(all, "settings"), "note: ")) << all;
  EXPECT_NE(said.out.find("maxmemory-policy"), std::string::npos) << all;
}

TEST_F(doctor, a_user_of_redis_without_rights_is_77_and_its_password_is_not_shown) {
  harness::redis_server server;
  server.ask({"acl", "setuser", "reader", "on", ">pw", "~*", "&*", "+@connection", "+@read",
              "+info", "+time", "+subscribe", "+unsubscribe"});
  const std::string url = "redis+unix://reader:pw@" + server.socket();
  const auto said = tool({"doctor", "--json", url});
  EXPECT_EQ(said.code, 77) << said.out << said.err;
  EXPECT_EQ(said.out.find("pw@"), std::string::npos) << "no password is shown";
}

// As with a proxy that sends the messages to another server.
TEST_F(doctor, notifications_of_redis_that_are_lost_are_warned_of) {
  const harness::redis_server server(
      {"--rename-command", "PUBLISH", "HIDDEN", "--rename-command", "TOUCH", "PUBLISH"});
  const json all = examined({server.url()});
  EXPECT_TRUE(any(of(all, "rights"), "ok: ")) << "the server accepts them: " << all;
  EXPECT_EQ(of(all, "notifications"), not_notified) << all;
  EXPECT_EQ(all["exit_code"], 1) << all;
}

// A session that listens in another database hears nothing.
TEST_F(doctor, notifications_of_postgres_that_are_lost_are_warned_of) {
  const harness::postgres_server server;
  const auto made = run_to_end({"psql", "-qh", "127.0.0.1", "-p", std::to_string(server.port()),
                                "-U", "postgres", "-c", "create database other"},
                               around);
  ASSERT_EQ(made.code, 0) << made.err;
  const auto listening = [&](const std::string& in) {
    return of(examined({server.url("?listen=postgres://postgres%40127.0.0.1:" +
                                   std::to_string(server.port()) + '/' + in)}),
              "notifications");
  };
  EXPECT_EQ(listening("other"), not_notified);
  EXPECT_TRUE(any(listening("postgres"), "ok: a waiter got the lock "));
}

TEST_F(doctor, a_password_on_its_command_line_is_warned_of_once) {
  harness::redis_server server;
  server.ask({"acl", "setuser", "app", "on", ">pw", "~*", "&*", "+@all"});
  const auto said = tool({"doctor", "redis+unix://app:pw@" + server.socket()});
  const std::string warning =
      "the URL on the command line has a password, or a part that may be one";
  const auto first = said.err.find(warning);
  ASSERT_NE(first, std::string::npos) << said.err;
  EXPECT_EQ(said.err.find(warning, first + 1), std::string::npos) << said.err;
}

TEST_F(doctor, memcached_may_drop_locks_and_the_finding_names_the_remedy) {
  const harness::memcached_server server;
  const json all = examined({server.url()});
  EXPECT_EQ(all["exit_code"], 1) << all;
  EXPECT_TRUE(any(of(all, "eviction"), "warning: ")) << all;
  EXPECT_TRUE(any(of(all, "rights"), "ok: ")) << all;
}

// Nothing tells the keys of a dialect from other keys.
TEST_F(doctor, a_store_whose_names_cannot_be_listed_has_a_note_and_is_examined_on) {
  harness::redis_server server({"--appendonly", "yes"});
  for (const char* dialect : {"redlock", "redisson", "setnx"}) {
    const json all = examined({server.url(std::string("?dialect=") + dialect)});
    for (const auto& f : all["findings"]) EXPECT_NE(f["level"], "problem") << f;
    EXPECT_EQ(all["exit_code"], dialect == std::string("setnx") ? 1 : 0) << all;
    const auto names = of(all, "names");
    ASSERT_EQ(names.size(), 1U) << all;
    EXPECT_TRUE(names[0].starts_with("note: the names cannot be listed: ")) << names[0];
    EXPECT_EQ(of(all, "clock"), std::vector<std::string>{"note: this store does not say when a "
                                                         "lock was taken, so the clocks were not "
                                                         "compared"});
    const bool notifies = dialect == std::string("redisson");
    EXPECT_TRUE(any(of(all, "notifications"), notifies ? "ok: " : "note: ")) << all;
  }
}

// A waiter may ask again when its subscription has begun, just when the lock is released: then it
// gets the lock, and no notification.
TEST(notification_watch, a_waiter_has_waited_since_its_last_request) {
  using namespace std::chrono_literals;
  const holdfast::tool::notification_watch watch;
  const auto session = holdfast::open("memory:notification_watch");
  holdfast::session_options watched;
  watched.decorate = watch.decorator();
  const auto other = holdfast::open("memory:notification_watch", watched);
  holdfast::mutex first{session, "m"}, second{other, "m"};
  auto held = first.acquire();
  EXPECT_FALSE(watch.has_waited(0ns)) << "nobody waits";
  auto next = async_acquire(second).future();
  harness::eventually("a waiter", [&] { return watch.has_waited(0ns); });
  EXPECT_FALSE(watch.has_waited(1h));
  EXPECT_FALSE(held.release());
  EXPECT_NO_THROW((void)next.get().value().release());
}

}  // namespace tool_test
