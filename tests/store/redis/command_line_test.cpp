#include "paths.hpp"
#ifdef HOLDFAST_TOOL  // a lane may be built without the program
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <holdfast/holdfast.hpp>
#include <nlohmann/json.hpp>

#include "harness/command_line.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"

// The program holdfast where only Redis shows the behaviour: passwords, and locks of others.
namespace redis_test {
namespace {

using nlohmann::json;
using words = std::vector<std::string>;

class redis_command_line : public testing::Test {
 protected:
  harness::outcome tool(const words& arguments) const { return tool_(arguments); }
  /// The command line of a holdfast within holdfast.
  static std::string inside(const std::string& command) {
    return std::string(HOLDFAST_TOOL) + " " + command;
  }
  void use(const std::string& url) { tool_.use(url); }
  void use_none() { tool_.use({}); }

 private:
  harness::command_line tool_;
};

TEST_F(redis_command_line, a_lock_that_was_handed_over_lasts_for_the_command) {
  const harness::redis_server server;
  harness::expect_the_command_outlives_a_hand_over(server.url());
}

// The notification arrives; the answer to the claim does not before the store has healed. A wait
// for that answer would never end.
TEST_F(redis_command_line, a_wait_ends_at_its_deadline_without_a_confirmed_hand_over) {
  const harness::redis_server server;
  harness::fault_proxy proxy(server.port());
  const auto session = holdfast::open(server.url());
  holdfast::mutex m(session, "handed");
  auto held = m.acquire();
  const harness::command_line behind("redis://127.0.0.1:" + std::to_string(proxy.port()) +
                                     "/0?command_timeout=1h");
  const auto next = behind.start({"run", "handed", "-w", "3s", "--log-format=json", "--", "true"});
  harness::eventually("a waiter", [&] { return session.show("handed").waiters.size() == 1; });
  proxy.with([](harness::relay& r) { r.stall(harness::way::up); });
  EXPECT_FALSE(held.release());
  while (json::parse(next->err.line())["event"] != "not_confirmed") {
  }
  proxy.heal();
  EXPECT_EQ(next->wait(), 69);
  EXPECT_TRUE(m.try_acquire());
}

class with_password : public redis_command_line {
 protected:
  std::string url() const {
    return "redis://:hun%2Fter2@127.0.0.1:" + std::to_string(server_.port()) + "/0";
  }
  harness::redis_server server_{{"--requirepass", "hun/ter2"}};
};

TEST_F(with_password, a_typed_url_is_found_by_nested_commands_and_stays_hidden) {
  const auto r = tool({"run", "outer", "--store", url(), "--", "sh", "-c",
                       "env; " + inside("try outer; ") + inside("run inner -- sh -c '") +
                           inside("try outer; ") + inside("try inner'")});
  EXPECT_EQ(r.code, 75) << r.err;
  EXPECT_NE(r.out.find("outer is busy"), r.out.rfind("outer is busy")) << r.out << r.err;
  EXPECT_NE(r.out.find("inner is busy"), r.out.npos) << r.out;
  EXPECT_EQ((r.out + r.err).find("ter2"), r.out.npos) << r.out << r.err;
}

TEST_F(with_password, a_url_from_the_environment_goes_on_to_nested_commands) {
  use(url());
  const auto r =
      tool({"run", "outer", "--", "sh", "-c", inside("run inner -- ") + inside("try outer")});
  EXPECT_EQ(r.code, 75) << r.err;
  EXPECT_EQ(r.err, "");
}

TEST_F(with_password, a_nested_run_that_would_wait_for_the_one_around_it_is_refused) {
  for (const bool typed : {true, false}) {
    typed ? use_none() : use(url());
    words run{"run", "l", "--", "sh", "-c", inside("run l -- true")};
    if (typed) run.insert(run.begin() + 2, {"--store", url()});
    const auto r = tool(run);
    EXPECT_EQ(r.code, 78);
    EXPECT_NE(r.err.find("would never end"), r.err.npos) << r.err;
  }
}

TEST_F(with_password, neither_the_status_file_nor_json_nor_a_message_shows_it) {
  const harness::temp_dir folder;
  const auto status = folder.file("status");
  const auto r =
      tool({"run", "l", "--json", "-v", "--status-file", status, "--store", url(), "--", "true"});
  EXPECT_EQ(r.code, 0) << r.err;
  std::ifstream in(status);
  const auto written = json::parse(in);
  EXPECT_EQ(written["store"], "redis://:***@127.0.0.1:" + std::to_string(server_.port()) + "/0");
  EXPECT_EQ((r.out + r.err).find("ter2"), r.out.npos) << r.err;
  for (const words& w : {words{"list"}, words{"show", "l"}}) {
    auto command = w;
    command.insert(command.end(), {"--json", "--store", url()});
    EXPECT_EQ(tool(command).out.find("ter2"), std::string::npos);
  }
}

TEST_F(with_password, a_password_file_that_is_a_fifo_is_an_error_without_a_wait) {
  const harness::temp_dir folder;
  ASSERT_EQ(::mkfifo(folder.file("password").c_str(), 0600), 0);
  const auto r = tool({"try", "l", "--store",
                       "redis://127.0.0.1:" + std::to_string(server_.port()) +
                           "?password_file=" + folder.file("password")});
  EXPECT_EQ(r.code, 64);
  EXPECT_NE(r.err.find("password_file"), r.err.npos) << r.err;
}

class foreign_holder : public redis_command_line {
 protected:
  foreign_holder() {
    use(server_.url("?dialect=redlock"));
    server_.ask({"SET", "l", "a token of another program", "PX", "60000"});
  }
  harness::redis_server server_;
};

TEST_F(foreign_holder, is_not_reported_as_free_by_force_unlock) {
  const auto r = tool({"force-unlock", "l", "--yes"});
  EXPECT_EQ(r.code, 1) << r.err;
  EXPECT_NE(r.out.find("held by another program, not taken"), r.out.npos) << r.out;
  EXPECT_EQ(server_.ask({"GET", "l"}), "a token of another program");
  const auto j = json::parse(tool({"force-unlock", "l", "--yes", "--json"}).out);
  EXPECT_EQ(j["removed"], 0);
  EXPECT_EQ(j["left"], 1);
  EXPECT_EQ(tool({"force-unlock", "free", "--yes"}).code, 0);
}

TEST_F(redis_command_line, a_holder_of_another_program_is_left_in_every_dialect) {
  const harness::redis_server server;
  server.ask({"HSET", "redisson", "8743c9c0-f7a5-4a5c-9f0b-1f2f7d1e8a01:1", "1"});
  server.ask({"PEXPIRE", "redisson", "60000"});
  server.ask({"SET", "setnx", "9999999999"});  // when it ends, in seconds since 1970
  // As redis-py and npm's redlock write it.
  server.ask({"SET", "redlock", "0123456789abcdef0123456789abcdef", "PX", "60000"});
  for (const std::string dialect : {"redisson", "setnx", "redlock"}) {
    use(server.url("?dialect=" + dialect));
    const auto r = tool({"force-unlock", dialect, "--yes"});
    EXPECT_EQ(r.code, 1) << r.err;
    EXPECT_NE(r.out.find("held by another program, not taken"), r.out.npos) << r.out;
    EXPECT_EQ(server.ask({"EXISTS", dialect}), "1");
    EXPECT_EQ(tool({"show", dialect}).out.find("1970"), std::string::npos);
  }
}

TEST_F(foreign_holder, is_shown_without_unknown_facts) {
  EXPECT_EQ(tool({"try", "l"}).out, "l is busy · held by another program\n");
  const auto holder = json::parse(tool({"show", "l", "--json"}).out)["holders"][0];
  for (const char* unknown : {"owner", "host", "pid", "program", "since", "held_seconds", "fence"})
    EXPECT_FALSE(holder.contains(unknown)) << holder;
  EXPECT_EQ(tool({"show", "l"}).out.find("1970"), std::string::npos);
}

TEST_F(foreign_holder, a_store_without_fences_passes_no_fence_to_the_child_and_warns) {
  const auto r = tool({"run", "other", "--", "sh", "-c", "echo ${HOLDFAST_FENCE-none}"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "none\n");
  EXPECT_NE(r.err.find("no fences"), r.err.npos) << r.err;
  const harness::temp_dir folder;
  const auto asked = tool({"run", "other", "--fence-file", folder.file("fence"), "--", "true"});
  EXPECT_EQ(asked.code, 78);
}

TEST_F(redis_command_line, list_shows_a_row_with_the_error_for_an_unreadable_entry) {
  const harness::redis_server server;
  use(server.url());
  auto session = holdfast::open(server.url());
  holdfast::mutex good{session, "good"};
  good.lock();
  server.ask({"SET", "holdfast:{bad}", "written by somebody else"});
  const auto r = tool({"list"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("good"), r.out.npos) << r.out;
  EXPECT_NE(r.out.find("unreadable"), r.out.npos) << r.out;
  const auto locks = json::parse(tool({"list", "--json"}).out)["locks"];
  ASSERT_EQ(locks.size(), 2U);
  EXPECT_EQ(locks[0]["lock"], "bad");
  EXPECT_TRUE(locks[0].contains("error"));
  EXPECT_EQ(locks[1]["holders"].size(), 1U);
  good.unlock();
}

}  // namespace
}  // namespace redis_test

#endif
