#include <algorithm>
#include <csignal>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/fake_redis.hpp"
#include "harness/redis_server.hpp"
#include "tool/fixture.hpp"

namespace tool_test {

namespace {

class meetings : public holdfast_tool {};

}  // namespace

TEST_F(meetings, a_latch_opens_when_all_have_counted_down) {
  EXPECT_EQ(tool({"latch", "ready", "2", "--peek"}).code, 75);
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1"}).out, "ready: counted, 1 of 2 left\n");
  EXPECT_EQ(tool({"latch", "ready", "2", "-w", "10ms", "-E", "3"}).code, 3);
  program waits(command({"latch", "ready", "2"}), around);
  wait_for_waiter("ready");
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1"}).code, 0);
  EXPECT_EQ(waits.wait(), 0);
  EXPECT_EQ(tool({"latch", "ready", "2"}).out, "ready: open, 0 of 2 left\n");
}

TEST_F(meetings, a_latch_refuses_impossible_options) {
  const auto too_many = tool({"latch", "ready", "2", "--down", "3"});
  EXPECT_EQ(too_many.code, 64);
  EXPECT_EQ(too_many.err,
            "holdfast: ready: cannot count down by 3: 2 of 2 are left; give --down 2 or less\n");
  EXPECT_EQ(tool({"latch", "ready", "0"}).code, 64);
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1", "--peek"}).code, 64);
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1"}).code, 0);
  EXPECT_NE(tool({"latch", "ready", "2", "--down", "2"}).err.find("1 of 2 are left"),
            std::string::npos);
  EXPECT_EQ(tool({"latch", "ready", "3"}).code, 78);
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1"}).code, 0);
  EXPECT_NE(tool({"latch", "ready", "2", "--down", "1"}).err.find("0 of 2 are left; --remove"),
            std::string::npos);
  EXPECT_EQ(tool({"latch", "ready", "2", "--remove"}).code, 0);
  EXPECT_EQ(tool({"latch", "ready", "3", "--peek", "--json"}).code, 75);
}

TEST_F(meetings, commands_at_a_barrier_go_on_together_again_and_again) {
  for (int i = 0; i < 2; ++i) {
    program first(command({"barrier", "stage", "2"}), around);
    wait_for_waiter("stage");
    EXPECT_EQ(tool({"barrier", "stage", "2"}).out, "stage: arrived\n");
    EXPECT_EQ(first.wait(), 0);
  }
}

TEST_F(meetings, a_command_that_gives_up_at_a_barrier_leaves_and_breaks_nothing) {
  program first(command({"barrier", "stage", "2"}), around);
  wait_for_waiter("stage");
  EXPECT_EQ(tool({"barrier", "stage", "3"}).code, 78) << "another count";
  program third(command({"barrier", "other", "2", "-w", "10ms"}), around);
  EXPECT_EQ(third.wait(), 75);
  EXPECT_EQ(third.out.rest(), "other: timed out, 1 of 2 had arrived\n");
  const auto as_json = tool({"barrier", "other", "3", "-w", "0", "--json"});
  EXPECT_EQ(nlohmann::json::parse(as_json.out)["remaining"], 2);
  EXPECT_EQ(tool({"list", "--json", "other"}).out.find("other"), std::string::npos);
  EXPECT_EQ(tool({"barrier", "stage", "2", "--json"}).code, 0);
  EXPECT_EQ(first.wait(), 0);
}

TEST_F(meetings, end_by_a_signal_while_the_store_hangs) {
  const harness::redis_server server;
  for (const words& meeting : {words{"barrier", "stage", "2"}, {"latch", "ready", "2"}}) {
    // A store that can be opened, and carries nothing out.
    server.ask({"CLIENT", "PAUSE", "3600000", "WRITE"});
    words unlimited = meeting;
    unlimited.insert(unlimited.end(), {"--store", server.url("?command_timeout=300ms")});
    program p(command(unlimited), around);
    harness::eventually("its request hangs", [&] {
      return server.field({"INFO", "clients"}, "blocked_clients") != "0";
    });
    p.signal(SIGTERM);
    EXPECT_EQ(p.wait(), 128 + SIGTERM) << meeting.front();
    server.ask({"CLIENT", "UNPAUSE"});
  }
}

TEST_F(meetings, at_a_latch_end_at_their_time_limit_although_the_store_hangs) {
  const harness::redis_server server;
  // A store that can be opened, and carries nothing out.
  server.ask({"CLIENT", "PAUSE", "3600000", "WRITE"});
  const auto latch = [&](words options) {
    options.insert(options.begin(), {"latch", "ready", "2", "-w", "500ms", "--store",
                                     server.url("?command_timeout=1h")});
    return tool(options);
  };
  const auto waits = latch({});
  EXPECT_EQ(waits.code, 75) << waits.err;
  EXPECT_EQ(waits.out, "ready: closed\n");
  const auto peeks = latch({"--peek"});
  EXPECT_EQ(peeks.code, 69) << "it does not know whether it is open";
  EXPECT_EQ(peeks.err, "holdfast: ready: the store did not answer in time\n");
  server.ask({"CLIENT", "UNPAUSE"});
}

// A script that repeats a failed command would count twice.
TEST_F(meetings, a_count_that_the_store_took_succeeds_whatever_it_answers_next) {
  std::string looked;
  const harness::fake_redis server([&](const harness::fake_redis::words& command) {
    const auto says = [&](const char* word) {
      return std::find(command.begin(), command.end(), word) != command.end();
    };
    if (says("arrive")) return std::string("*4\r\n:3\r\n:2\r\n:1\r\n:0\r\n");
    return says("inspect") ? looked : std::string();
  });
  const words down{"latch", "ready", "3", "--down", "1", "--store", server.url()};
  looked = "*4\r\n:3\r\n:0\r\n:1\r\n:0\r\n";
  EXPECT_EQ(tool(down).out, "ready: counted\n") << "the latch was removed in between";
  for (const std::string gone : {"-ERR gone\r\n", harness::fake_redis::hang_up}) {
    looked = gone;
    const auto counted = tool(down);
    EXPECT_EQ(counted.code, 0) << counted.err;
    EXPECT_EQ(counted.out, "ready: counted\n");
  }
}

TEST_F(meetings, a_peek_reports_the_count_that_is_left) {
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1"}).code, 0);
  const auto closed = tool({"latch", "ready", "2", "--peek"});
  EXPECT_EQ(closed.code, 75);
  EXPECT_EQ(closed.out, "ready: closed, 1 of 2 left\n");
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1"}).code, 0);
  const auto open = tool({"latch", "ready", "2", "--peek"});
  EXPECT_EQ(open.code, 0);
  EXPECT_EQ(open.out, "ready: open, 0 of 2 left\n");
}

TEST_F(meetings, a_death_at_a_barrier_is_79_for_the_others) {
  program dies(command({"barrier", "stage", "3"}), around);
  wait_for_waiter("stage");
  program other(command({"barrier", "stage", "3"}), around);
  harness::eventually("both wait", [&] { return shown("stage")["waiters"].size() == 2; });
  dies.signal(SIGKILL);
  EXPECT_EQ(other.wait(), 79);
}

TEST_F(meetings, sem_runs_a_command_with_one_of_so_many_permits) {
  const holder one(*this, {"pool", "--slots", "2"});
  EXPECT_EQ(tool({"sem", "pool", "2", "-n", "--", "true"}).code, 0);
  const holder two(*this, {"pool", "--slots", "2"});
  EXPECT_EQ(tool({"sem", "pool", "2", "-n", "--", "true"}).code, 75);
  EXPECT_EQ(tool({"sem", "pool", "3", "-n", "--", "true"}).code, 78);
  EXPECT_EQ(tool({"sem", "pool", "2"}).code, 64) << "no command";
}

}  // namespace tool_test
