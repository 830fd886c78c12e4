#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "harness/redis_server.hpp"
#include "paths.hpp"
#include "tool/fixture.hpp"
#include "tool/tmux.hpp"

// top, watch and graph as people use them.
namespace tool_test::live_test {

namespace {

using nlohmann::json;

class live_commands : public holdfast_tool {
 protected:
  void sql(const std::string& statement) const {
    const auto r = run_to_end(
        {"sqlite3", "-cmd", ".timeout 60000", folder.file("locks.db"), statement}, around);
    ASSERT_EQ(r.code, 0) << r.err;
  }
  /// A shell's line that starts `top` and leaves its pid in a file.
  std::string top_in_shell(const std::string& options = "") const {
    return "sh -c 'echo $$ > " + folder.file("pid") + "; exec " HOLDFAST_TOOL " top -d 50ms " +
           options + "'";
  }
  pid_t top_pid() const {
    pid_t pid = 0;
    std::ifstream(folder.file("pid")) >> pid;
    return pid;
  }
};

}  // namespace

TEST_F(live_commands, top_shows_changes_and_a_queue) {
  const tmux screen(around, HOLDFAST_TOOL " top -d 50ms");
  screen.shows("no names in use");
  holder h(*this, {"nightly", "--reason", "backup"});
  screen.shows("backup");
  screen.shows(">nightly");
  program waiter(command({"hold", "nightly"}), around);
  wait_for_waiter("nightly");
  screen.shows("1 held, 1 waiting");
  screen.press({"Enter"});
  screen.shows("waiting, in this order");
  screen.press({"Escape"});
  screen.press({"/"});
  screen.type("nothing");
  screen.shows("no name in use mentions nothing");
  screen.press({"Escape"});
  screen.shows(">nightly");
  h.let_go();
  screen.shows("1 held, 0 waiting");
}

TEST_F(live_commands, a_terminal_that_was_stopped_does_not_keep_a_command_from_starting) {
  holder h(*this, {"nightly"});
  const tmux screen(around, HOLDFAST_TOOL " run nightly -- touch " + folder.file("started"));
  screen.shows("waiting for nightly");
  screen.press({"C-s"});
  h.let_go();
  harness::eventually("the command to start",
                      [&] { return std::filesystem::exists(folder.file("started")); });
}

TEST_F(live_commands, top_unlocks_after_a_yes_only) {
  holder h(*this, {"nightly"});
  const tmux screen(around, HOLDFAST_TOOL " top -d 50ms");
  screen.shows(">nightly");
  screen.press({"u"});
  screen.shows("Take nightly away from");
  screen.type("no");
  screen.press({"Enter"});
  screen.shows("nothing was changed");
  EXPECT_EQ(tool({"try", "nightly"}).code, 75);
  screen.press({"u"});
  screen.type("yes");
  screen.press({"Enter"});
  screen.shows("nightly: taken away from 1 holder");
  EXPECT_EQ(tool({"try", "nightly"}).code, 0);
}

TEST_F(live_commands, top_fits_a_terminal_that_changes_its_size) {
  const holder h(*this, {"nightly", "--reason", "backup"});
  const tmux screen(around, HOLDFAST_TOOL " top -d 50ms");
  screen.shows("q quit");
  screen.resize(50, 8);
  screen.hides("backup");
  screen.shows(">nightly");
  screen.resize(140, 30);
  screen.shows("backup");
}

TEST_F(live_commands, top_gives_the_terminal_back_as_it_was_however_it_ends) {
  const tmux screen(around, "bash --norc --noprofile");
  screen.type("PS1='[$?] '; ulimit -c 0; stty -g > " + folder.file("before") + '\n');
  screen.shows("[0]");
  int round = 0;
  const auto end = [&](const std::function<void()>& how, const std::string& code) {
    screen.type("clear; " + top_in_shell() + '\n');
    screen.shows("no names in use");
    EXPECT_EQ(screen.state("#{alternate_on}#{cursor_flag}#{wrap_flag}"), "100\n");
    how();
    screen.shows('[' + code + ']');
    EXPECT_EQ(screen.state("#{alternate_on}#{cursor_flag}#{wrap_flag}"), "011\n") << code;
    const std::string mark = "round" + std::to_string(++round);
    screen.type("clear; stty -g | diff - " + folder.file("before") + " && echo $((" +
                std::to_string(round) + "))" + mark + '\n');
    screen.shows(std::to_string(round) + mark);
  };
  end([&] { screen.press({"q"}); }, "0");
  end([&] { screen.press({"C-c"}); }, "0");
  for (const int signal :
       {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT, SIGIO, SIGSTKFLT, SIGPWR, SIGRTMAX})
    end([&] { ::kill(top_pid(), signal); }, std::to_string(128 + signal));
}

TEST_F(live_commands, top_stops_and_continues_as_any_program) {
  const tmux screen(around, "bash --norc --noprofile");
  for (const bool typed : {true, false}) {
    screen.type("clear; " + top_in_shell() + '\n');
    screen.shows("no names in use");
    if (typed)
      screen.press({"C-z"});
    else
      ::kill(top_pid(), SIGTSTP);
    screen.shows("Stopped");
    EXPECT_EQ(screen.state("#{alternate_on}#{cursor_flag}"), "01\n");
    screen.type("fg\n");
    screen.shows("no names in use");
    EXPECT_EQ(screen.state("#{alternate_on}#{cursor_flag}"), "10\n");
    screen.press({"q"});
    screen.hides("no names in use");
  }
}

TEST_F(live_commands, text_of_other_programs_moves_nothing_on_the_screen_of_top) {
  const holder h(*this, {"nightly", "--reason", "plain"});
  sql(R"(update holdfast_locks set record =
         replace(record, 'plain', 'r\u001b[2J\u001b]0;owned\u0007' || char(8238) || 'x'))");
  sql("insert into holdfast_locks select 'evil' || char(27) || '[2J' || char(8238) || 'x', record "
      "from holdfast_locks");
  const tmux screen(around, HOLDFAST_TOOL " top -d 50ms", 300);
  screen.shows(R"(evil\x1b[2J\u{202e}x)");
  screen.shows(R"("r\x1b[2J\x1b]0;owned\x07\u{202e}x")");
  screen.shows("2 names");
  EXPECT_NE(screen.state("#{pane_title}"), "owned\n");
}

TEST_F(live_commands, top_without_a_terminal_names_the_options_to_use) {
  const auto r = tool({"top"});
  EXPECT_EQ(r.code, 64);
  EXPECT_NE(r.err.find("--once"), std::string::npos) << r.err;
  const holder h(*this, {"nightly"});
  const auto once = tool({"top", "--once"});
  EXPECT_EQ(once.code, 0);
  EXPECT_TRUE(once.out.starts_with("NAME     KIND ")) << once.out;
  EXPECT_NE(once.out.find("nightly"), std::string::npos);
  EXPECT_EQ(json::parse(tool({"top", "--once", "--json"}).out)["locks"][0]["lock"], "nightly");
}

// Nothing tells the keys of a dialect from other keys.
TEST_F(live_commands, that_need_a_list_end_with_78_where_the_store_has_none) {
  const harness::redis_server server;
  for (const char* dialect : {"redlock", "redisson", "setnx"}) {
    around.environment.front() = "HOLDFAST_STORE=" + server.url(std::string("?dialect=") + dialect);
    holder h(*this, {"nightly"});
    for (const words& what : {words{"list"}, {"graph"}, {"top", "--once"}, {"top", "--json"}}) {
      const auto said = tool(what);
      EXPECT_EQ(said.code, 78) << what[0];
      EXPECT_NE(said.err.find("so they cannot be listed"), said.err.npos) << said.err;
      EXPECT_EQ(said.err.find("the graph is empty"), said.err.npos) << said.err;
      EXPECT_EQ(said.out, "") << what[0];
    }
    for (const words& what : {words{"show", "nightly"}, {"ping", "-c", "1"}})
      EXPECT_EQ(tool(what).code, 0) << what[0];
    EXPECT_EQ(tool({"try", "nightly"}).code, 75);
    EXPECT_EQ(tool({"watch", "nightly", "--until", "held"}).code, 0);
    EXPECT_EQ(h.let_go(), 0);
    const tmux screen(around, "bash --norc --noprofile", 300);
    screen.type("PS1='[$?] '; " HOLDFAST_TOOL " top\n");
    screen.shows("[78]");
    screen.shows("so they cannot be listed");
  }
}

TEST_F(live_commands, watch_prints_a_line_for_each_change) {
  std::optional<holder> before(std::in_place, *this, std::vector<std::string>{"l"});
  program watch(command({"watch", "l", "-d", "10ms", "--json"}), around);
  const auto next = [&] { return json::parse(watch.out.line()); };
  EXPECT_EQ(next()["event"], "holding");  // from now on it sees each change
  before->let_go();
  EXPECT_EQ(next()["event"], "released");
  holder first(*this, {"l", "--reason", "one"});
  auto e = next();
  EXPECT_EQ(e["event"], "granted");
  EXPECT_EQ(e["lock"], "l");
  EXPECT_EQ(e["participant"]["reason"], "one");
  EXPECT_EQ(e["participant"]["fence"], first.facts["fence"]);
  program second(command({"hold", "--json", "l", "--reason", "two"}), around);
  EXPECT_EQ(next()["event"], "joined");
  first.let_go();
  e = next();
  // Between two polls the one may be gone and the other not yet there.
  if (e["event"] == "released") {
    e = next();
    EXPECT_EQ(e["event"], "granted");
  } else {
    EXPECT_EQ(e["event"], "hand-over");
    EXPECT_EQ(e["before"]["reason"], "one");
  }
  EXPECT_EQ(e["participant"]["reason"], "two");
  second.close_stdin();
  EXPECT_EQ(next()["event"], "released");
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.wait(), 0);
}

TEST_F(live_commands, watch_ends_at_the_event_of_until) {
  holder h(*this, {"l"});
  EXPECT_EQ(tool({"watch", "l", "--until", "held"}).code, 0);
  EXPECT_EQ(tool({"watch", "l", "--until", "granted", "-w", "1ms"}).code, 75) << "it was before";
  EXPECT_EQ(tool({"watch", "l", "--until", "free", "-w", "1ms", "-E", "3"}).code, 3);
  EXPECT_EQ(tool({"watch", "l", "-w", "1ms"}).code, 0);
  program until(command({"watch", "l", "--until", "free", "-d", "10ms"}), around);
  EXPECT_NE(until.out.line().find(" holding "), std::string::npos);
  h.let_go();
  EXPECT_EQ(until.wait(), 0);
  program stopped(command({"watch", "l", "--until", "held", "-v"}), around);
  stopped.err.line();
  stopped.signal(SIGTERM);
  EXPECT_EQ(stopped.wait(), 128 + SIGTERM);
}

TEST_F(live_commands, watch_ends_when_its_time_is_over_although_the_store_hangs) {
  for (const bool until : {true, false}) {
    harness::redis_server server;
    words command_line{
        "watch", "l", "-w", "2s", "-d", "10ms", "-v", "--store", server.url("?command_timeout=1h")};
    if (until) command_line.insert(command_line.end(), {"--until", "held"});
    program watch(command(command_line), around);
    EXPECT_NE(watch.err.line().find("asks "), std::string::npos);
    server.stop();
    EXPECT_EQ(watch.wait(), until ? 75 : 0);
    server.resume();
  }
}

TEST_F(live_commands, watch_whose_time_is_over_does_not_blame_the_store) {
  harness::redis_server server;
  around.environment.front() = "HOLDFAST_STORE=" + server.url("?command_timeout=1h");
  const holder h(*this, {"l"});
  // Less than the second from which on a query without an answer shows that the store is away.
  program watch(command({"watch", "l", "-w", "900ms", "-d", "10ms"}), around);
  EXPECT_NE(watch.out.line().find(" holding "), std::string::npos);
  server.stop();
  EXPECT_EQ(watch.wait(), 0);
  server.resume();
  EXPECT_EQ(watch.err.rest(), "");
}

TEST_F(live_commands, watch_counts_a_hand_over_as_a_release_and_as_a_grant) {
  for (const char* until : {"granted", "released", "hand-over"}) {
    holder first(*this, {"l"});
    // It polls when the lock has changed hands, and not in between.
    program watch(command({"watch", "l", "--until", until, "-d", "10ms"}), around);
    EXPECT_NE(watch.out.line().find(" holding "), std::string::npos);
    watch.stop();
    first.let_go();
    const holder second(*this, {"l"});
    watch.signal(SIGCONT);
    EXPECT_EQ(watch.wait(), 0) << until;
    EXPECT_NE(watch.out.rest().find(" hand-over "), std::string::npos);
  }
}

TEST_F(live_commands, watch_tells_a_lease_that_ended_from_a_release) {
  const holder h(*this, {"l", "--ttl", "3s"});
  program watch(command({"watch", "l", "-d", "10ms", "--json"}), around);
  EXPECT_EQ(json::parse(watch.out.line())["event"], "holding");
  h.process.stop();
  EXPECT_EQ(json::parse(watch.out.line())["event"], "lost");
}

TEST_F(live_commands, top_without_a_terminal_ends_with_128_and_the_signal) {
  const holder h(*this, {"nightly"});
  program lines(command({"top", "--json", "-d", "20ms"}), around);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(json::parse(lines.out.line())["locks"].size(), 1u);
  lines.signal(SIGTERM);
  EXPECT_EQ(lines.wait(), 128 + SIGTERM);
}

TEST_F(live_commands, watch_does_not_report_a_late_seen_release_as_a_loss) {
  holder h(*this, {"l", "--ttl", "3s"});
  program watch(command({"watch", "l", "-d", "10ms", "--json"}), around);
  EXPECT_EQ(json::parse(watch.out.line())["event"], "holding");
  watch.stop();
  h.let_go();
  // It polls again when the lease that it saw would have ended.
  const auto then = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  harness::eventually("the time has come", [&] { return std::chrono::steady_clock::now() > then; });
  watch.signal(SIGCONT);
  EXPECT_EQ(json::parse(watch.out.line())["event"], "released");
}

TEST_F(live_commands, graph_finds_two_shells_that_wait_for_each_other) {
  const auto inner = [](const std::string& outer, const std::string& then) {
    return words{"run", outer, "--", HOLDFAST_TOOL, "run", then, "--", "true"};
  };
  EXPECT_EQ(tool({"graph"}).out, "no process waits for another\n");
  holder gate(*this, {"b"});
  program one(command(inner("a", "b")), around);
  wait_for_waiter("b");
  program two(command(run_sh("c", {}, HOLDFAST_TOOL " run a -- true")), around);
  wait_for_waiter("a");
  EXPECT_EQ(json::parse(tool({"graph", "--json"}).out)["rings"].size(), 0u);
  gate.let_go();
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(two.wait(), 0);

  program left(command(run_sh("a", {}, "echo in; read x; exec " HOLDFAST_TOOL " run b -- true")),
               around);
  program right(command(run_sh("b", {}, "echo in; read x; exec " HOLDFAST_TOOL " run a -- true")),
                around);
  left.out.until("in\n");
  right.out.until("in\n");
  left.tell("\n");
  right.tell("\n");
  wait_for_waiter("a");
  wait_for_waiter("b");
  const auto g = json::parse(tool({"graph", "--json"}).out);
  ASSERT_EQ(g["rings"].size(), 1u) << g;
  EXPECT_EQ(g["rings"][0].size(), 4u) << "two runs, and the two that they have started";
  const auto text = tool({"graph"}).out;
  EXPECT_NE(text.find("\nring: "), std::string::npos) << text;
  EXPECT_NE(text.find("* "), std::string::npos) << text;
  EXPECT_NE(tool({"graph", "--dot"}).out.find("color=red"), std::string::npos);
  EXPECT_EQ(json::parse(tool({"graph", "a*", "--json"}).out)["rings"].size(), 0u);
}

}  // namespace tool_test::live_test
