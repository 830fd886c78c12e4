#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "tool/fixture.hpp"
#include "tool/signals.hpp"
#include "tool/tmux.hpp"

// Signals to `holdfast run`, and unannounced ends.
namespace tool_test {

namespace {

class run_signals : public holdfast_tool {
 protected:
  words run_role(const std::string& name, words options = {}) const {
    words all{"run", "l"};
    all.insert(all.end(), options.begin(), options.end());
    all.push_back("--");
    const auto child = role(name);
    all.insert(all.end(), child.begin(), child.end());
    return command(all);
  }
};

struct system_call {
  explicit system_call(const std::filesystem::path& thread) {
    std::ifstream(thread / "syscall") >> number >> arguments[0] >> arguments[1] >> arguments[2] >>
        arguments[3];
  }
  long number = -1;
  std::array<std::string, 4> arguments;
};

// In a stopped process: another thread writes to the log, and the main thread waits for it with a
// limit. If the main thread waits without a limit, it waits for a thread that ends, and it is too
// late for a signal.
bool waits_for_its_log(pid_t pid) {
  const std::filesystem::path of = "/proc/" + std::to_string(pid);
  const system_call main(of);
  if (main.number != SYS_futex || main.arguments[3] == "0x0") return false;
  const std::filesystem::directory_iterator threads(of / "task");
  return std::any_of(begin(threads), end(threads),
                     [](auto& t) { return system_call(t.path()).number == SYS_write; });
}

// The message about the command makes it wait as long. Its own helper is "holdfast-guard".
bool has_started_a_command(pid_t pid) {
  std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) +
                         "/children");
  EXPECT_TRUE(children) << "the kernel lists no children";
  for (std::string child, name; children >> child;) {
    std::ifstream("/proc/" + child + "/comm") >> name;
    if (!name.starts_with("holdfast")) return true;
  }
  return false;
}

/// It has arrived, and nobody has taken it.
bool is_pending(int signal, pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (status >> word && word != "ShdPnd:") continue;
  std::uint64_t set = 0;
  status >> std::hex >> set;
  return (set >> (signal - 1) & 1) != 0;
}

const words one_token{"limit", "api", "--rate", "2/1d", "-w", "20s"};
const words one_less{"latch", "ready", "2", "--down", "1"};

bool is_unreaped(pid_t pid) {
  std::string number, name, state;
  std::ifstream("/proc/" + std::to_string(pid) + "/stat") >> number >> name >> state;
  return state == "Z";
}

/// A run whose command got TERM, and ended. The command's own child ignores TERM, and has stdout
/// open.
struct told_to_go {
  told_to_go(surroundings around, const words& times) : process(run(times), ignoring_term(around)) {
    left = std::stoi(process.out.line());
    const pid_t child = std::stoi(process.out.line());
    process.err.until("TERM to the command");
    process.close_stdin();
    harness::eventually("the command has ended",
                        [&] { return is_unreaped(child) || ::kill(child, 0) != 0; });
    // It checks for the end of its child before it takes the second of them.
    for (int i = 0; i < 2; ++i) {
      process.signal(SIGWINCH);
      process.err.until("passed WINCH on");
    }
    EXPECT_TRUE(is_unreaped(child)) << "its number may be somebody else's";
  }
  program process;
  pid_t left = 0;

 private:
  static surroundings& ignoring_term(surroundings& around) {
    around.ignored_signals = {SIGTERM};
    return around;
  }
  static words run(const words& times) {
    words all{HOLDFAST_TOOL, "run", "l", "-v", "--max-run", "10ms"};
    all.insert(all.end(), times.begin(), times.end());
    all.insert(all.end(), {"-c", "tail -f /dev/null & echo $!; echo $$; read x"});
    return all;
  }
};

}  // namespace

TEST_F(run_signals, forwards_every_signal_to_the_child) {
  program p(run_role("tell_signals"), around);
  EXPECT_EQ(p.out.line(), "ready");
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGWINCH, SIGCONT}) {
    p.signal(s);
    EXPECT_EQ(p.out.line(), ::sigabbrev_np(s));
    if (holdfast::tool::asks_to_stop(s) && s != SIGHUP) {
      EXPECT_EQ(p.out.line(), "CONT");
    }
  }
  p.signal(SIGUSR2);
  EXPECT_EQ(p.out.line(), "USR2");
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(run_signals, forwards_to_the_whole_group_of_the_child) {
  program p(command(run_sh("l", {}, "tail -f /dev/null & echo up; wait")), around);
  EXPECT_EQ(p.out.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 128 + SIGTERM);
  EXPECT_EQ(p.out.rest(), "");  // the grandchild has closed stdout, too
}

TEST_F(run_signals, to_end_reach_a_stopped_child) {
  program p(command(run_sh("l", {}, "echo $$; kill -STOP $$")), around);
  const std::string stat = "/proc/" + p.out.line() + "/stat";
  harness::eventually("the child is stopped", [&] {
    std::string pid, name, state;
    std::ifstream(stat) >> pid >> name >> state;
    return state == "T";
  });
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 128 + SIGTERM);
}

TEST_F(run_signals, ends_with_the_code_that_the_child_gives_the_signal) {
  program p(command(run_sh("l", {}, "trap 'exit 7' TERM; echo up; read line")), around);
  EXPECT_EQ(p.out.line(), "up");
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 7);
}

TEST_F(run_signals, before_acquisition_cancel_the_wait_and_leave_the_queue) {
  const holder other(*this, {"l"});
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    program p(command(run_sh("l", {}, "touch " + folder.file("ran"))), around);
    wait_for_waiter("l");
    p.signal(s);
    EXPECT_EQ(p.wait(), 128 + s);
    EXPECT_TRUE(shown("l")["waiters"].empty());
    EXPECT_FALSE(std::filesystem::exists(folder.file("ran")));
  }
}

TEST_F(run_signals, in_the_moment_of_the_acquisition_start_nothing) {
  // It has the lock and wants to report that where there is no room for its message. It gives that
  // up in a moment: if it is caught later, it is left alone, and the next one may be caught.
  const std::string full = folder.file("log");
  const std::string ran = folder.file("ran");
  ASSERT_EQ(::mkfifo(full.c_str(), 0600), 0);
  const int reader = ::open(full.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  std::array<char, 4096> page{};
  words shell{"sh", "-c", R"(exec "$@" 2> "$0")", full};
  const words run = command(run_sh("l", {"-v"}, "touch " + ran));
  shell.insert(shell.end(), run.begin(), run.end());
  harness::eventually("it is caught while it says that it has the lock", [&] {
    while (::write(reader, page.data(), page.size()) > 0) continue;
    std::filesystem::remove(ran);
    program p(shell, around);
    harness::eventually("it has the lock", [&] {
      return !shown("l")["holders"].empty() || std::filesystem::exists(ran);
    });
    p.stop();
    // Its last message finds no room, either: then the command has come and gone.
    const bool caught = waits_for_its_log(p.pid()) && !has_started_a_command(p.pid()) &&
                        !std::filesystem::exists(ran);
    if (caught) p.signal(SIGTERM);
    while (::read(reader, page.data(), page.size()) > 0) continue;
    p.signal(SIGCONT);
    EXPECT_EQ(p.wait(), caught ? 128 + SIGTERM : 0);
    EXPECT_EQ(std::filesystem::exists(ran), !caught);
    return caught;
  });
  ::close(reader);
}

TEST_F(run_signals, that_are_not_about_ending_leave_the_wait_alone) {
  holder other(*this, {"l"});
  program p(command({"run", "l", "--", "echo", "ran"}), around);
  wait_for_waiter("l");
  for (const int s : {SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT}) p.signal(s);
  other.let_go();
  EXPECT_EQ(p.out.line(), "ran");
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(run_signals, that_were_ignored_stay_ignored) {
  holder other(*this, {"l"});
  around.ignored_signals = {SIGHUP};  // nohup
  program p(command({"run", "l", "-v", "--", "cat"}), around);
  wait_for_waiter("l");
  p.signal(SIGHUP);  // does not end the wait
  other.let_go();
  p.tell("a\n");
  EXPECT_EQ(p.out.line(), "a");
  p.signal(SIGHUP);  // and is not passed on
  p.close_stdin();
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(p.err.rest().find("HUP"), std::string::npos);
}

TEST_F(run_signals, a_kill_of_the_tool_takes_the_child_and_its_children_with_it) {
  // The kernel kills the shell; only the dead man kills its child. Both have stdout open.
  program p(command(run_sh("l", {}, "tail -f /dev/null & echo up; tail -f /dev/null")), around);
  EXPECT_EQ(p.out.line(), "up");
  p.signal(SIGKILL);
  EXPECT_EQ(p.wait(), 128 + SIGKILL);
  EXPECT_EQ(p.out.rest(), "");
}

TEST_F(run_signals, a_kill_of_the_tool_takes_the_child_also_without_the_dead_man) {
  program p(command({"run", "l", "--", "sh", "-c", "echo up; exec tail -f /dev/null"}), around);
  EXPECT_EQ(p.out.line(), "up");
  pid_t guard = 0;
  // It may print "up" before the dead man has its name.
  harness::eventually("there is a dead man", [&] {
    for (const pid_t pid : harness::children_of(p.pid())) {
      std::ifstream name("/proc/" + std::to_string(pid) + "/comm");
      std::string comm;
      if (std::getline(name, comm) && comm == "holdfast-guard") guard = pid;
    }
    return guard != 0;
  });
  ASSERT_NE(guard, 0);
  ASSERT_EQ(::kill(guard, SIGKILL), 0);
  p.signal(SIGKILL);
  EXPECT_EQ(p.out.rest(), "");
}

TEST_F(run_signals, a_stop_of_the_tool_kills_only_processes_of_the_command) {
  program p({"sh", "-c",
             "tail --pid=$$ -f /dev/null >/dev/null 2>&1 & echo $!; exec " HOLDFAST_TOOL
             " run l --ttl 2s -- sh -c 'echo $$; exec tail -f /dev/null'"},
            around);
  const pid_t other = std::stoi(p.out.line());
  const pid_t child = std::stoi(p.out.line());
  p.stop();
  harness::eventually("the child is killed", [&] { return is_unreaped(child); });
  p.signal(SIGCONT);
  EXPECT_EQ(p.wait(), 79);
  EXPECT_EQ(::kill(other, SIGKILL), 0);
}

TEST_F(run_signals, a_kill_of_the_tool_ends_signalled_children_of_an_ended_command) {
  told_to_go t(around, {"--ttl", "1m", "--kill-after", "20s"});
  t.process.signal(SIGKILL);
  EXPECT_EQ(t.process.out.rest(), "");
}

TEST_F(run_signals, a_stop_of_the_tool_ends_signalled_children_of_an_ended_command) {
  // It has to be stopped before that time is over.
  told_to_go t(around, {"--ttl", "15s", "--kill-after", "5s"});
  t.process.stop();
  harness::eventually("what is left is killed", [&] { return is_unreaped(t.left); });
  t.process.signal(SIGCONT);
  EXPECT_EQ(t.process.wait(), 79);
}

TEST_F(run_signals, a_kill_of_the_tool_frees_the_lock_at_once) {
  program p(command({"run", "l", "--ttl", "31d", "--", "cat"}), around);
  p.tell("up\n");
  EXPECT_EQ(p.out.line(), "up");
  p.signal(SIGKILL);
  p.wait();
  // Not after the lease, which would be a month.
  EXPECT_EQ(tool({"run", "l", "-w", "50", "--", "true"}).code, 0);
}

TEST_F(run_signals, a_kill_of_the_child_frees_the_lock) {
  program p(command(run_sh("l", {}, "echo $$; read line")), around);
  const pid_t child = std::stoi(p.out.line());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(p.wait(), 137);
  EXPECT_EQ(tool({"run", "l", "-n", "--", "true"}).code, 0);
}

TEST_F(run_signals, that_come_too_late_to_stop_a_request_hide_no_outcome) {
  EXPECT_EQ(tool(one_token).code, 0);
  // Of one request: between two of them a signal would not be too late.
  around.environment.front() += "?busy_timeout=1h";
  for (const words& asks : {one_token, one_less}) {
    auto at_terminal = around;
    at_terminal.on_terminal = true;
    std::optional<write_blocker> away(std::in_place, folder.file("locks.db"), around);
    program p(command(asks), at_terminal);
    p.out.until("waiting");  // from now on a signal asks for an orderly end
    p.signal(SIGTERM);
    harness::eventually("it has taken the signal", [&] { return !is_pending(SIGTERM, p.pid()); });
    away.reset();
    EXPECT_NE(p.out.rest().find(" left\r\n"), std::string::npos) << asks.front();
    EXPECT_EQ(p.wait(), 0) << asks.front();
  }
}

TEST_F(run_signals, that_come_while_the_outcome_is_reported_do_not_change_it) {
  const std::string full = folder.file("out");
  ASSERT_EQ(::mkfifo(full.c_str(), 0600), 0);
  const int reader = ::open(full.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  std::array<char, 4096> page{};
  for (const words& asks : {one_token, one_less}) {
    while (::write(reader, page.data(), page.size()) > 0) continue;
    words all{"sh", "-c", R"(exec "$@" > "$0")", full};
    const auto asked = command(asks);
    all.insert(all.end(), asked.begin(), asked.end());
    program p(all, around);
    const auto tells = [&] {
      long call = -1;
      std::string file;
      std::ifstream("/proc/" + std::to_string(p.pid()) + "/syscall") >> call >> file;
      return call == SYS_write && file == "0x1";
    };
    harness::eventually("it tells", tells);
    p.signal(SIGTERM);
    while (::read(reader, page.data(), page.size()) > 0) continue;
    EXPECT_EQ(p.wait(), 0) << asks.front();
  }
  ::close(reader);
}

TEST_F(run_signals, a_background_child_of_an_ended_command_is_left_alone) {
  const auto r = tool(run_sh("l", {"-v"}, "tail -f /dev/null >/dev/null 2>&1 & echo $!"));
  const pid_t left = std::stoi(r.out);
  EXPECT_EQ(::kill(left, SIGKILL), 0);
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("1 process of the command continues"), std::string::npos) << r.err;
}

TEST_F(run_signals, at_a_terminal_a_typed_one_reaches_the_child_once) {
  around.on_terminal = true;
  program p(run_role("tell_signals"), around);
  p.out.until("ready");
  p.tell("\x03");
  p.out.until("INT");
  p.signal(SIGUSR2);
  // A second INT would have come before USR2.
  EXPECT_EQ(p.out.until("USR2").find("INT"), std::string::npos);
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(run_signals, at_a_terminal_a_sent_one_is_forwarded) {
  around.on_terminal = true;
  program p(run_role("tell_signals"), around);
  p.out.until("ready");
  p.signal(SIGINT);
  p.out.until("INT");
  p.signal(SIGUSR2);
  p.out.until("USR2");
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(run_signals, at_a_terminal_the_child_can_read_typed_text) {
  around.on_terminal = true;
  program p(command(run_sh("l", {}, "read line; echo \"got $line\"")), around);
  p.tell("hello\n");
  p.out.until("got hello");
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(run_signals, at_a_terminal_the_child_can_read_typed_text_though_stdin_is_a_pipe) {
  around.on_terminal = true;
  const std::string reads = "'read x </dev/tty; read y; echo \"got $x and $y\"'";
  program p({"sh", "-c", "echo data | " HOLDFAST_TOOL " run l -- sh -c " + reads}, around);
  p.tell("hello\n");
  p.out.until("got hello and data");
  EXPECT_EQ(p.wait(), 0);
}

// The kernel signals only the leader of the session, as `ssh -t` starts it.
TEST_F(run_signals, of_a_terminal_that_hangs_up_reach_the_command) {
  {
    const tmux screen(around, "exec " HOLDFAST_TOOL
                              " run l -- sh -c 'echo up; exec tail -f /dev/null' </dev/null");
    screen.shows("up");
  }
  harness::eventually("it is free", [&] { return tool({"try", "l"}).code == 0; });
}

TEST_F(run_signals, at_a_terminal_the_wait_is_shown_and_the_line_is_cleared) {
  holder other(*this, {"l"});
  around.on_terminal = true;
  program p(command({"run", "l", "--", "echo", "ran"}), around);
  const std::string seen = p.out.until("you are 1st");
  EXPECT_NE(seen.find("waiting for l · held by "), std::string::npos) << seen;
  EXPECT_NE(seen.find("pid " + std::to_string(other.process.pid())), std::string::npos) << seen;
  other.let_go();
  EXPECT_NE(p.out.until("ran").find("\r\x1b[K"), std::string::npos);
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(run_signals, on_a_pipe_the_wait_is_silent) {
  holder other(*this, {"l"});
  program p(command({"run", "l", "--", "true"}), around);
  wait_for_waiter("l");
  other.let_go();
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(p.err.rest(), "");
}

TEST_F(run_signals, of_a_terminal_do_not_stop_a_hold_in_its_background) {
  const tmux screen(around, "bash --norc --noprofile");
  screen.type(HOLDFAST_TOOL " hold l & tail -f /dev/null\n");
  screen.shows("holding l");
  screen.type("typed\n");  // nobody else reads it
  screen.shows("typed");
  screen.press({"C-c"});
  screen.type("jobs\n");
  screen.shows("Running");
  const pid_t pid = shown("l")["holders"][0]["pid"];
  ::kill(pid, SIGTERM);  // a stopped one would not end
  harness::eventually("it is free", [&] { return tool({"try", "l"}).code == 0; });
}

TEST_F(run_signals, a_hold_that_is_in_the_foreground_again_ends_with_stdin) {
  const tmux screen(around, "bash --norc --noprofile");
  screen.type("set -o ignoreeof; " HOLDFAST_TOOL " hold l &\n");
  screen.shows("holding l");
  screen.type("fg\n");
  harness::eventually("it is free", [&] {
    screen.press({"C-d"});  // the first ones may still reach the shell
    return tool({"try", "l"}).code == 0;
  });
}

TEST_F(run_signals, end_a_hold_politely) {
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    holder h(*this, {"l"});
    h.process.signal(s);
    EXPECT_EQ(nlohmann::json::parse(h.process.out.line())["event"], "released");
    EXPECT_EQ(h.process.wait(), 0);
    EXPECT_EQ(tool({"try", "l"}).code, 0);
  }
}

}  // namespace tool_test
