#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "tool/fixture.hpp"

// The lock is lost while the command runs: taken away, or the store is away, or we are stopped.
namespace tool_test {

namespace {

class run_loss : public holdfast_tool {
 protected:
  words run_role(const std::string& name, words options, words arguments = {}) const {
    words all{"run", "l", "--log-format=json"};
    all.insert(all.end(), options.begin(), options.end());
    all.push_back("--");
    const auto child = role(name, std::move(arguments));
    all.insert(all.end(), child.begin(), child.end());
    return command(all);
  }

  int taken_away() const { return tool({"force-unlock", "l", "--yes"}).code; }
};

double remaining(const nlohmann::json& event) { return event["lease_remaining_seconds"]; }

}  // namespace

TEST_F(run_loss, a_force_released_lock_ends_a_willing_child) {
  program p(run_role("tell_signals", {"--ttl", "3s"}), around);
  EXPECT_EQ(p.out.line(), "ready");
  EXPECT_EQ(taken_away(), 0);
  EXPECT_EQ(p.out.line(), "TERM");
  wait_for(p, "terminated");
  p.signal(SIGUSR2);  // forwarded: and now it exits with 0
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, a_force_released_lock_kills_a_child_that_ignores_term) {
  program p(run_role("ignore_term", {"--ttl", "3s", "--kill-after", "50ms"}), around);
  EXPECT_EQ(p.out.line(), "ready");
  EXPECT_EQ(taken_away(), 0);
  wait_for(p, "terminated");
  wait_for(p, "killed");
  EXPECT_EQ(p.wait(), 79);
  EXPECT_EQ(p.out.rest(), "");
}

TEST_F(run_loss, the_next_holder_has_a_greater_token) {
  program p(run_role("ignore_term", {"--ttl", "3s", "--kill-after", "50ms"}), around);
  EXPECT_EQ(p.out.line(), "ready");
  const std::uint64_t before = std::stoull(std::string(shown("l")["holders"][0]["fence"]));
  EXPECT_EQ(taken_away(), 0);
  const holder next(*this, {"l"});
  EXPECT_GT(std::stoull(std::string(next.facts["fence"])), before);
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, a_force_release_during_a_quick_child_is_noticed_at_the_end) {
  program p(command({"run", "l", "--", "cat"}), around);  // renewed only every 10 s
  p.tell("up\n");
  EXPECT_EQ(p.out.line(), "up");
  EXPECT_EQ(taken_away(), 0);
  p.close_stdin();
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, the_exit_code_can_be_chosen) {
  program p(
      run_role("ignore_term", {"--ttl", "3s", "--kill-after", "50ms", "--lost-exit-code", "41"}),
      around);
  EXPECT_EQ(p.out.line(), "ready");
  EXPECT_EQ(taken_away(), 0);
  EXPECT_EQ(p.wait(), 41);
}

TEST_F(run_loss, on_lost_kill_sends_no_term) {
  program p(run_role("tell_signals", {"--ttl", "3s", "--on-lost=kill"}), around);
  EXPECT_EQ(p.out.line(), "ready");
  EXPECT_EQ(taken_away(), 0);
  EXPECT_EQ(p.out.rest(), "");
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, on_lost_warn_lets_the_child_finish_and_still_exits_with_79) {
  program p(run_role("ignore_term", {"--ttl", "3s", "--on-lost=warn"}), around);
  EXPECT_EQ(p.out.line(), "ready");
  EXPECT_EQ(taken_away(), 0);
  wait_for(p, "unprotected");
  p.close_stdin();
  EXPECT_EQ(p.out.line(), "went by itself");
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, a_store_that_is_away_ends_the_child_before_the_lease_does) {
  // A fortieth of the lease is what the program may be late before the dead man kills the command.
  program p(run_role("ignore_term", {"--ttl", "10s", "--kill-after", "400ms"}), around);
  EXPECT_EQ(p.out.line(), "ready");
  const write_blocker away(folder.file("locks.db"), around);
  const auto terminated = wait_for(p, "terminated");
  const auto killed = wait_for(p, "killed");
  EXPECT_GT(remaining(terminated), remaining(killed));
  EXPECT_GT(remaining(killed), 0.0);
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, a_store_that_comes_back_in_time_costs_nothing) {
  program p(run_role("ignore_term", {"--ttl", "5s", "--kill-after", "50ms"}), around);
  EXPECT_EQ(p.out.line(), "ready");
  {
    const write_blocker away(folder.file("locks.db"), around);
    wait_for(p, "suspect");
  }
  wait_for(p, "held_again");
  p.close_stdin();
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(run_loss, a_lease_in_doubt_is_released_if_the_store_answers_in_a_moment) {
  program p(command(run_sh("l", {"--ttl", "9s", "--kill-after", "3s", "--log-format=json"},
                           "echo up; read x")),
            around);
  EXPECT_EQ(p.out.line(), "up");
  {
    const write_blocker away(folder.file("locks.db"), around);
    wait_for(p, "giving_back");
  }
  EXPECT_EQ(p.wait(), 79);
  EXPECT_EQ(tool({"run", "l", "-n", "--", "true"}).code, 0);
}

TEST_F(run_loss, a_stopped_tool_does_not_keep_the_child_alive_beyond_the_lease) {
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  program p(run_role("keep_open", {"--ttl", "2s"}, {fifo}), around);
  reader from_child(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(from_child.line(), "up");
  p.stop();
  EXPECT_EQ(from_child.rest(), "");  // the dead man killed it: only it had the FIFO open
  p.signal(SIGCONT);
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, a_stopped_tool_at_a_terminal_keeps_no_process_alive_either) {
  // Here the child has no group of its own, and its own child has even left the session.
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  around.on_terminal = true;
  program p(command(run_sh("l", {"--ttl", "2s"},
                           "exec >" + fifo + "; echo up; setsid tail -f /dev/null & read x")),
            around);
  reader from_child(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(from_child.line(), "up");
  p.stop();
  EXPECT_EQ(from_child.rest(), "");
  p.signal(SIGCONT);
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, a_stopped_child_is_woken_to_see_the_term) {
  program p(command(run_sh("l", {"--ttl", "3s", "--log-format=json"},
                           "trap 'echo bye; exit 0' TERM; echo $$; kill -STOP $$; read x")),
            around);
  const std::string child = p.out.line();
  harness::eventually("the child is stopped", [&] {
    std::ifstream stat("/proc/" + child + "/stat");
    std::string line;
    return std::getline(stat, line) && line.find(") T ") != std::string::npos;
  });
  EXPECT_EQ(taken_away(), 0);
  EXPECT_EQ(p.out.line(), "bye");
  EXPECT_EQ(p.wait(), 79);
}

TEST_F(run_loss, hold_reports_the_loss_and_exits_with_79) {
  holder h(*this, {"l", "--ttl", "3s"});
  EXPECT_EQ(taken_away(), 0);
  EXPECT_EQ(nlohmann::json::parse(h.process.out.line())["event"], "lost");
  EXPECT_EQ(h.process.wait(), 79);
}

TEST_F(run_loss, hold_finds_out_at_its_end) {
  holder h(*this, {"l"});  // renewed only every 10 s
  EXPECT_EQ(taken_away(), 0);
  EXPECT_EQ(h.let_go(), 79);
}

TEST_F(run_loss, a_loss_during_min_hold_keeps_the_childs_code) {
  program p(command({"run", "l", "--json", "--ttl", "3s", "--min-hold", "1h", "--", "sh", "-c",
                     "exit 3"}),
            around);
  wait_for(p, "min_hold");
  EXPECT_EQ(taken_away(), 0);
  EXPECT_EQ(p.wait(), 3);
}

}  // namespace tool_test
