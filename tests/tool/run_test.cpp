#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "harness/redis_server.hpp"
#include "paths.hpp"
#include "tool/fixture.hpp"

// `holdfast run` as a shell sees it: codes, files, environment, exclusion. Signals and losses are
// in signals_test.cpp and loss_test.cpp.
namespace tool_test {

namespace {

class run_command : public holdfast_tool {
 protected:
  std::string file_text(const std::string& name) const {
    std::ifstream file(folder.path() / name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  nlohmann::json status() const { return nlohmann::json::parse(file_text("status.json")); }
  words with_status(words arguments) const {
    arguments.insert(arguments.begin() + 2, "--status-file=" + folder.file("status.json"));
    return arguments;
  }
};

}  // namespace

TEST_F(run_command, passes_the_childs_exit_code_through) {
  for (const int code : {0, 1, 3, 64, 75, 79, 125, 255})
    EXPECT_EQ(tool(run_sh("l", {}, "exit " + std::to_string(code))).code, code);
}

TEST_F(run_command, reports_a_child_that_died_of_a_signal_as_a_shell_does) {
  for (const int s : {SIGTERM, SIGKILL, SIGSEGV, SIGUSR1})
    EXPECT_EQ(tool(run_sh("l", {}, "kill -" + std::to_string(s) + " $$")).code, 128 + s);
}

TEST_F(run_command, exits_with_127_for_a_program_that_is_not_there) {
  const auto r = tool({"run", "l", "--", "no-such-program-anywhere"});
  EXPECT_EQ(r.code, 127);
  EXPECT_NE(r.err.find("cannot run no-such-program-anywhere"), std::string::npos) << r.err;
}

TEST_F(run_command, exits_with_126_for_a_file_that_cannot_be_executed) {
  std::ofstream(folder.file("data")) << "x";
  EXPECT_EQ(tool({"run", "l", "--", folder.file("data")}).code, 126);
  EXPECT_EQ(tool({"run", "l", "--", folder.path().string()}).code, 126);
}

TEST_F(run_command, exits_with_75_when_the_lock_is_busy_or_with_the_chosen_code) {
  const holder other(*this, {"l"});
  EXPECT_EQ(tool({"run", "l", "-n", "--", "true"}).code, 75);
  EXPECT_EQ(tool({"run", "l", "-w", "0", "--", "true"}).code, 75);
  EXPECT_EQ(tool({"run", "l", "-w", "50ms", "--", "true"}).code, 75);
  EXPECT_EQ(tool({"run", "l", "-n", "-E", "0", "--", "true"}).code, 0);
  EXPECT_EQ(tool({"run", "l", "-n", "-E", "9", "--", "true"}).code, 9);
}

TEST_F(run_command, prints_nothing_when_the_lock_is_busy) {
  const holder other(*this, {"l"});
  const auto r = tool({"run", "l", "-n", "--", "true"});
  EXPECT_EQ(r.out + r.err, "");
}

TEST_F(run_command, does_not_start_the_child_when_it_is_busy) {
  const holder other(*this, {"l"});
  tool(run_sh("l", {"-n"}, "touch " + folder.file("ran")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("ran")));
}

TEST_F(run_command, waits_for_the_holder_without_a_limit) {
  holder other(*this, {"l"});
  program waiter(command({"run", "l", "--json", "--", "echo", "ran"}), around);
  wait_for_waiter("l");
  EXPECT_EQ(other.let_go(), 0);
  EXPECT_EQ(waiter.out.line(), "ran");
  EXPECT_EQ(waiter.wait(), 0);
}

TEST_F(run_command, exits_with_64_for_wrong_usage_and_prints_one_line) {
  const auto r = tool({"run", "l", "--ttl", "5sec", "--", "true"});
  EXPECT_EQ(r.code, 64);
  EXPECT_EQ(r.err, "holdfast: run: --ttl: '5sec' is not a duration; did you mean 5s?\n");
}

TEST_F(run_command, exits_with_64_for_a_name_that_the_library_refuses) {
  EXPECT_EQ(tool({"run", "", "--", "true"}).code, 64);
  EXPECT_EQ(tool({"run", "a\x1b[2J", "--", "true"}).code, 64);
  EXPECT_EQ(tool({"run", std::string(300, 'a'), "--", "true"}).code, 64);
}

TEST_F(run_command, exits_with_64_for_a_typed_url_and_with_78_for_one_from_the_environment) {
  EXPECT_EQ(tool({"run", "l", "--store", "sqlitee:x", "--", "true"}).code, 64);
  around.environment[0] = "HOLDFAST_STORE=sqlitee:x";
  const auto r = tool({"run", "l", "--", "true"});
  EXPECT_EQ(r.code, 78);
  EXPECT_NE(r.err.find("$HOLDFAST_STORE: open"), std::string::npos) << r.err;
}

TEST_F(run_command, exits_with_78_for_times_that_cannot_be_kept) {
  const auto r = tool({"run", "l", "--ttl", "3s", "--kill-after", "2s", "--", "true"});
  EXPECT_EQ(r.code, 78);
  EXPECT_NE(r.err.find("at most 1s fits"), std::string::npos) << r.err;
}

TEST_F(run_command, exits_with_78_for_a_name_in_use_as_another_kind) {
  const holder other(*this, {"l", "--slots", "3"});
  EXPECT_EQ(tool({"run", "l", "-n", "--", "true"}).code, 78);
  EXPECT_EQ(tool({"run", "l", "-n", "--slots", "4", "--", "true"}).code, 78);
}

TEST_F(run_command, exits_with_125_when_it_cannot_write_the_fence) {
  // A folder of that name is created after the check and before the lock is acquired.
  std::filesystem::create_directory(folder.path() / "out");
  holder other(*this, {"l"});
  program p(command({"run", "l", "--fence-file", folder.file("out/fence"), "--", "true"}), around);
  wait_for_waiter("l");
  std::filesystem::remove(folder.path() / "out");
  other.let_go();
  EXPECT_EQ(p.wait(), 125);
}

TEST_F(run_command, exits_with_125_at_once_for_a_fence_file_that_is_a_fifo_without_a_reader) {
  ASSERT_EQ(::mkfifo(folder.file("fence").c_str(), 0600), 0);
  const auto r = tool({"run", "l", "--fence-file", folder.file("fence"), "--", "true"});
  EXPECT_EQ(r.code, 125);
  EXPECT_NE(r.err.find("nobody reads it"), std::string::npos) << r.err;
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(run_command, ends_though_its_status_file_is_a_fifo_without_a_reader) {
  ASSERT_EQ(::mkfifo(folder.file("status").c_str(), 0600), 0);
  const auto r =
      tool({"run", "l", "--status-file", folder.file("status"), "--", "sh", "-c", "exit 3"});
  EXPECT_EQ(r.code, 3);
  EXPECT_NE(r.err.find("cannot write --status-file"), std::string::npos) << r.err;
}

TEST_F(run_command, needs_no_right_to_the_folder_of_a_file_that_it_writes_in_place) {
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::create_symlink("/dev/null", folder.file("null"));
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0400), 0);
  around.environment[0] = "HOLDFAST_STORE=sqlite:/no/such/folder/x";
  around.unprivileged = true;
  const auto to_null = tool({"run", "l", "--status-file", folder.file("null"), "--", "true"});
  EXPECT_EQ(to_null.err.find("--status-file"), std::string::npos) << to_null.err;
  const auto to_fifo = tool({"run", "l", "--status-file", folder.file("fifo"), "--", "true"});
  EXPECT_EQ(to_fifo.code, 64);
  EXPECT_NE(to_fifo.err.find("cannot write to"), std::string::npos) << to_fifo.err;
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("null")));
}

TEST_F(run_command, writes_the_fence_into_a_fifo_that_is_read) {
  ASSERT_EQ(::mkfifo(folder.file("fence").c_str(), 0600), 0);
  const int reader = ::open(folder.file("fence").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const auto r = tool(run_sh("l", {"--fence-file", folder.file("fence")}, "echo $HOLDFAST_FENCE"));
  char heard[64]{};
  EXPECT_GT(::read(reader, heard, sizeof heard - 1), 0);
  EXPECT_EQ(r.out, heard);
  ::close(reader);
}

TEST_F(run_command, and_its_kin_begin_their_errors_with_the_command_that_was_typed) {
  around.environment[0] = "HOLDFAST_STORE=sqlite:/no/such/folder/x";
  EXPECT_TRUE(tool({"run", "l", "--", "true"}).err.starts_with("holdfast: run: "));
  EXPECT_TRUE(tool({"sem", "l", "2", "--", "true"}).err.starts_with("holdfast: sem: "));
  EXPECT_TRUE(tool({"elect", "l", "--", "true"}).err.starts_with("holdfast: elect: "));
}

TEST_F(run_command, and_its_kin_begin_an_error_of_an_open_store_with_that_command_too) {
  EXPECT_EQ(tool({"latch", "l", "2", "--down", "1"}).code, 0);
  for (const words& arguments : {words{"run", "l", "--", "true"},
                                 {"sem", "l", "2", "--", "true"},
                                 {"elect", "l", "--", "true"}}) {
    const auto r = tool(arguments);
    EXPECT_EQ(r.code, 78) << r.err;
    EXPECT_TRUE(r.err.starts_with("holdfast: " + arguments.front() + ": ")) << r.err;
    EXPECT_NE(r.err.find("latch"), std::string::npos) << r.err;
  }
}

TEST_F(run_command, hands_stdin_stdout_and_stderr_to_the_child) {
  const std::string bytes("a\0b\nc\xff", 6);
  const auto r = tool(run_sh("l", {}, "cat; echo oops >&2"), bytes);
  EXPECT_EQ(r.out, bytes);
  EXPECT_EQ(r.err, "oops\n");
}

TEST_F(run_command, leaves_stdout_to_the_child_also_when_it_is_talkative) {
  const auto r = tool({"run", "l", "-v", "--min-hold", "1ms", "--", "echo", "x"});
  EXPECT_EQ(r.out, "x\n");
  EXPECT_NE(r.err.find("holdfast: l: acquired"), std::string::npos) << r.err;
}

TEST_F(run_command, has_held_for_long_enough_when_the_child_took_longer_than_min_hold) {
  const auto r = tool({"run", "l", "-v", "--min-hold", "50ms", "--", "sleep", "0.1"});
  EXPECT_NE(r.err.find("holdfast: l: acquired"), std::string::npos) << r.err;
  EXPECT_EQ(r.err.find("kept for --min-hold"), std::string::npos) << r.err;
}

TEST_F(run_command, sets_the_environment_of_the_child) {
  const auto r = tool(run_sh(
      "l", {},
      "echo $HOLDFAST_LOCK; echo $HOLDFAST_FENCE; echo $HOLDFAST_OWNER; echo $HOLDFAST_STORE"));
  std::istringstream lines(r.out);
  std::string lock, fence, owner, url;
  lines >> lock >> fence >> owner >> url;
  EXPECT_EQ(lock, "l");
  EXPECT_EQ(fence.find_first_not_of("0123456789"), std::string::npos);
  EXPECT_EQ(owner.size(), 8U);
  EXPECT_EQ(url, store);
}

TEST_F(run_command, explains_how_to_write_a_shell_command) {
  const auto r = tool({"run", "l", "--", "ls -l | wc -l"});
  EXPECT_EQ(r.code, 127);
  EXPECT_NE(r.err.find("write -c in place of --"), std::string::npos) << r.err;
}

TEST_F(run_command, tells_the_fence_by_its_older_name_too) {
  const auto r =
      tool(run_sh("l", {}, "test $HOLDFAST_TOKEN -gt 0 -a $HOLDFAST_TOKEN = $HOLDFAST_FENCE"));
  EXPECT_EQ(r.code, 0) << r.err;
}

TEST_F(run_command, gives_nested_runs_their_own_environment) {
  const auto r = tool(run_sh("outer", {},
                             "echo $HOLDFAST_LOCK $HOLDFAST_FENCE; " HOLDFAST_TOOL
                             " run inner -- sh -c 'echo $HOLDFAST_LOCK $HOLDFAST_FENCE'; "
                             "env | grep -c ^HOLDFAST_LOCK="));
  std::istringstream lines(r.out);
  std::string outer, inner, outer_fence, inner_fence, count;
  lines >> outer >> outer_fence >> inner >> inner_fence >> count;
  EXPECT_EQ(outer, "outer");
  EXPECT_EQ(inner, "inner");
  EXPECT_NE(outer_fence, inner_fence);
  EXPECT_EQ(count, "1");
}

TEST_F(run_command, finds_a_relative_store_again_from_another_folder) {
  around.folder = folder.path().string();
  around.environment[0] = "HOLDFAST_STORE=sqlite:here.db";
  const auto r = tool(run_sh("l", {}, "cd / && " HOLDFAST_TOOL " try l"));
  EXPECT_EQ(r.code, 75) << r.out << r.err;
}

TEST_F(run_command, finds_a_relative_store_again_under_any_folder_name) {
  around.environment[0] = "HOLDFAST_STORE=sqlite:here%20.db";
  for (const char* name : {"a%41b", "what?x=1", "c#d"}) {
    std::filesystem::create_directory(folder.file(name));
    around.folder = folder.file(name);
    const auto r = tool(run_sh("l", {}, "cd / && " HOLDFAST_TOOL " try l"));
    EXPECT_EQ(r.code, 75) << name << ": " << r.out << r.err;
    EXPECT_TRUE(std::filesystem::exists(folder.file(std::string(name) + "/here .db"))) << name;
  }
}

TEST_F(run_command, refuses_to_wait_for_the_run_around_it) {
  const auto r = tool(run_sh("l", {}, HOLDFAST_TOOL " run l -- true"));
  EXPECT_EQ(r.code, 78);
  EXPECT_NE(r.err.find("would never end"), std::string::npos) << r.err;
  EXPECT_EQ(tool(run_sh("l", {}, HOLDFAST_TOOL " run l -n -- true")).code, 75);
  EXPECT_EQ(tool(run_sh("l", {"-s"}, HOLDFAST_TOOL " run l -s -- true")).code, 0);
}

TEST_F(run_command, counts_the_fence_up_from_run_to_run) {
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t fence = std::stoull(tool(run_sh("l", {}, "echo $HOLDFAST_FENCE")).out);
    EXPECT_GT(fence, last);
    last = fence;
  }
}

TEST_F(run_command, writes_the_fence_before_the_child_starts) {
  const auto r = tool(run_sh("l", {"--fence-file", folder.file("fence")},
                             "test $(cat " + folder.file("fence") + ") = $HOLDFAST_FENCE"));
  EXPECT_EQ(r.code, 0);
}

TEST_F(run_command, gives_a_command_string_to_the_shell) {
  EXPECT_EQ(tool({"run", "l", "-c", "echo a | tr a b; exit 5"}).out, "b\n");
  EXPECT_EQ(tool({"run", "l", "-c", "echo a | tr a b; exit 5"}).code, 5);
}

TEST_F(run_command, frees_the_lock_when_the_child_has_ended) {
  EXPECT_EQ(tool({"run", "l", "--", "false"}).code, 1);
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(run_command, keeps_two_runs_apart) {
  // Not atomic on purpose: read, and write one more.
  const std::string counter = folder.file("counter");
  std::ofstream(counter) << 0;
  constexpr int workers = 4;
  constexpr int runs = 10;
  std::vector<std::thread> threads;
  std::vector<int> failures(workers);
  for (std::size_t w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      for (int i = 0; i < runs; ++i)
        failures[w] +=
            tool(run_sh("l", {}, "n=$(cat " + counter + "); echo $((n+1)) > " + counter)).code;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(failures, std::vector<int>(workers));
  EXPECT_EQ(file_text("counter"), std::to_string(workers * runs) + "\n");
}

TEST_F(run_command, lets_as_many_in_as_there_are_slots) {
  holder first(*this, {"l", "--slots", "2"});
  const holder second(*this, {"l", "--slots", "2"});
  EXPECT_EQ(tool({"run", "l", "-n", "--slots", "2", "--", "true"}).code, 75);
  EXPECT_EQ(first.let_go(), 0);
  EXPECT_EQ(tool({"run", "l", "-n", "--slots", "2", "--", "true"}).code, 0);
}

TEST_F(run_command, lets_readers_in_together_and_writers_alone) {
  holder first(*this, {"l", "-s"});
  EXPECT_EQ(tool({"run", "l", "-n", "-s", "--", "true"}).code, 0);
  EXPECT_EQ(tool({"run", "l", "-n", "-x", "--", "true"}).code, 75);
  EXPECT_EQ(first.let_go(), 0);
  const holder writer(*this, {"l", "-x"});
  EXPECT_EQ(tool({"run", "l", "-n", "-s", "--", "true"}).code, 75);
}

TEST_F(run_command, excludes_a_plain_run_from_a_read_write_lock_in_use) {
  holder reader(*this, {"l", "-s"});
  EXPECT_EQ(tool({"run", "l", "-n", "--", "true"}).code, 75);
  reader.let_go();
  holder writer(*this, {"l", "-x"});
  EXPECT_EQ(tool({"run", "l", "-n", "--", "true"}).code, 75);
  writer.let_go();
  const holder plain(*this, {"l"});
  EXPECT_EQ(tool({"run", "l", "-n", "-x", "--", "true"}).code, 75);
  const auto r = tool({"run", "l", "-n", "-s", "--", "true"});
  EXPECT_EQ(r.code, 78);
  EXPECT_NE(r.err.find("with -s or -x"), std::string::npos) << r.err;
}

TEST_F(run_command, takes_a_fair_lock_that_excludes_the_others) {
  const holder other(*this, {"l", "--fair"});
  EXPECT_EQ(tool({"run", "l", "-n", "--", "true"}).code, 75);
  EXPECT_EQ(tool({"run", "l", "-n", "--fair", "--", "true"}).code, 75);
}

TEST_F(run_command, keeps_the_lock_for_min_hold_after_a_short_child) {
  program p(command({"run", "l", "--json", "--min-hold", "1h", "--", "true"}), around);
  wait_for(p, "min_hold");
  EXPECT_EQ(tool({"try", "l"}).code, 75);
  p.signal(SIGTERM);  // ends the wait, and keeps the child's code
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(run_command, does_not_wait_when_the_child_took_longer_than_min_hold) {
  const auto r = tool({"run", "l", "--json", "--min-hold", "1ns", "--", "true"});
  EXPECT_EQ(r.code, 64);  // a nanosecond is no documented unit
  const auto s = tool({"run", "l", "--json", "--min-hold", "0", "--", "true"});
  EXPECT_EQ(s.code, 0);
  EXPECT_EQ(s.err.find("min_hold"), std::string::npos);
}

TEST_F(run_command, ends_the_child_after_max_run) {
  const auto r = tool({"run", "l", "--max-run", "50ms", "--", "tail", "-f", "/dev/null"});
  EXPECT_EQ(r.code, 124);
  EXPECT_NE(r.err.find("--max-run"), std::string::npos) << r.err;
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(run_command, kills_a_child_that_ignores_the_end_of_max_run) {
  around.ignored_signals = {SIGTERM};  // from before its first instruction
  program p(command({"run", "l", "--json", "--max-run", "50ms", "--kill-after", "50ms", "--",
                     "tail", "-f", "/dev/null"}),
            around);
  wait_for(p, "killed");
  EXPECT_EQ(p.wait(), 124);
}

TEST_F(run_command, leaves_no_grandchild_behind_after_max_run) {
  // The shell ends at once; its child has left the group and ignores TERM.
  const auto r = tool(run_sh("l", {"--max-run", "300ms", "--kill-after", "50ms"},
                             "trap '' TERM; setsid tail -f /dev/null & trap - TERM; wait"));
  EXPECT_EQ(r.code, 124);  // and stdout came to its end: nobody holds it open
}

// As the entry point of a container that starts a second program.
TEST_F(run_command, neither_ends_nor_awaits_processes_that_the_command_did_not_start) {
  const auto r = run_to_end(
      {"sh", "-c",
       "tail --pid=$$ -f /dev/null >/dev/null 2>&1 & echo $!; exec " HOLDFAST_TOOL
       " run l --max-run 100ms --kill-after 100ms -- sh -c 'trap \"\" TERM; tail -f /dev/null'"},
      around);
  EXPECT_EQ(r.code, 124) << r.err;
  EXPECT_EQ(::kill(std::stoi(r.out), SIGKILL), 0);
}

TEST_F(run_command, writes_down_how_it_went) {
  EXPECT_EQ(tool(with_status(run_sh("l", {}, "exit 3"))).code, 3);
  auto s = status();
  EXPECT_EQ(s["schema"], 1);
  EXPECT_EQ(s["outcome"], "exited");
  EXPECT_EQ(s["exit_code"], 3);
  EXPECT_EQ(s["child_exit_code"], 3);
  EXPECT_TRUE(s["child_signal"].is_null());
  EXPECT_TRUE(s["fence"].is_string());
  EXPECT_EQ(s["lost"], false);

  tool(with_status(run_sh("l", {}, "kill -9 $$")));
  s = status();
  EXPECT_EQ(s["outcome"], "signalled");
  EXPECT_EQ(s["child_signal"], 9);
}

TEST_F(run_command, writes_details_beyond_the_exit_code_into_the_status_file) {
  EXPECT_EQ(tool(with_status(run_sh("l", {}, "exit 75"))).code, 75);
  EXPECT_EQ(status()["outcome"], "exited");
  {
    const holder other(*this, {"l"});
    EXPECT_EQ(tool(with_status(run_sh("l", {"-n"}, "true"))).code, 75);
    EXPECT_EQ(status()["outcome"], "busy");
  }
  EXPECT_EQ(tool(with_status({"run", "l", "--", "no-such-program"})).code, 127);
  EXPECT_EQ(status()["outcome"], "not_found");
  EXPECT_EQ(tool(with_status({"run", "l", "--", "/"})).code, 126);
  EXPECT_EQ(status()["outcome"], "not_executable");
  EXPECT_EQ(
      tool(with_status({"run", "l", "--max-run", "1ms", "--", "tail", "-f", "/dev/null"})).code,
      124);
  EXPECT_EQ(status()["outcome"], "max_run");
  EXPECT_EQ(tool(with_status({"run", "", "--", "true"})).code, 64);
  EXPECT_EQ(status()["outcome"], "failed");
  EXPECT_NE(status()["message"], "");
}

TEST_F(run_command, writes_the_outcome_stopped_if_stopped_while_it_opens_the_store) {
  std::ofstream(folder.file("status.json")) << "of an earlier run";
  const auto nobody = "redis://127.0.0.1:" + std::to_string(harness::free_port());
  program p(command(with_status({"run", "l", "--store", nobody, "--", "true"})), around);
  p.err.until("waiting for the store");
  EXPECT_FALSE(std::filesystem::exists(folder.file("status.json")));
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 128 + SIGTERM);
  EXPECT_EQ(status()["outcome"], "stopped");
  EXPECT_EQ(status()["exit_code"], 128 + SIGTERM);
}

TEST_F(run_command, passes_its_own_signals_and_files_on_to_the_child) {
  // 32 and 33 are glibc's own: if we were started with them ignored, as by some CI systems, a
  // process with threads has them handled, and its children have the defaults.
  const std::string script =
      "while read -r name mask; do case $name in Sig[BIC]*)"
      "  echo $name $((0x$mask & ~0x180000000)) ;; esac; done </proc/self/status;"
      "ls /proc/self/fd";
  const auto direct = run_to_end({"sh", "-c", script}, around);
  const auto r = tool(run_sh("l", {}, script));
  EXPECT_EQ(r.out, direct.out) << r.code << " " << r.err;
}

TEST_F(run_command, gives_the_child_nothing_that_was_opened_meanwhile) {
  EXPECT_EQ(run_to_end(role("open_two", {}), around).out, "1\n2\n40\n");
}

TEST_F(run_command, leaves_closed_files_closed_and_writes_nowhere_else) {
  const std::string script =
      "test ! -e /proc/self/fd/0 -a ! -e /proc/self/fd/2 && readlink /proc/$PPID/fd/2";
  const auto r = run_to_end({"sh", "-c", "exec \"$@\" <&- 2>&-", "sh", HOLDFAST_TOOL, "run", "l",
                             "-v", "--", "sh", "-c", script},
                            around);
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "/dev/null\n");  // a database or a pipe could have had that number
  const auto without_stdout = command({"run", "l", "--", "test", "!", "-e", "/proc/self/fd/1"});
  EXPECT_EQ(run_to_end(with_closed_stdout(without_stdout), around).code, 0);
}

TEST_F(run_command, does_not_hand_systemds_socket_on) {
  around.environment.push_back("NOTIFY_SOCKET=/nowhere");
  EXPECT_EQ(tool({"run", "l", "--", "env"}).out.find("NOTIFY_SOCKET"), std::string::npos);
}

// A pager that is not scrolled, the journal, and a device that is neither a pipe nor a socket. A
// renewal, and the start of the command, wait for no reader.
TEST_F(run_command, does_not_wait_for_the_reader_of_its_messages) {
  for (const std::string kind : {"pipe", "socket", "device"}) {
    const std::string started = folder.file(kind);
    auto all = role("with_full_stderr", {kind});
    const auto run = command({"run", "l", "-v", "--", "touch", started});
    all.insert(all.end(), run.begin(), run.end());
    EXPECT_EQ(run_to_end(all, around).code, 0) << kind;
    EXPECT_TRUE(std::filesystem::exists(started)) << kind;
  }
}

TEST_F(run_command, prints_no_escape_sequences_on_a_pipe) {
  const auto r = tool({"run", "l", "-v", "--", "no-such-program"});
  EXPECT_EQ(r.err.find('\x1b'), std::string::npos);
  EXPECT_NE(tool({"run", "l", "--color=always", "--", "no-such-program"}).err.find('\x1b'),
            std::string::npos);
}

TEST_F(run_command, writes_one_json_event_a_line) {
  const auto r = tool({"run", "l", "--log-format=json", "--", "true"});
  std::istringstream lines(r.err);
  words events;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    EXPECT_EQ(event["schema"], 1);
    events.push_back(event["event"]);
  }
  EXPECT_EQ(events, (words{"acquired", "started", "released"}));
}

TEST_F(run_command, shows_others_its_holder_and_reason) {
  program p(command({"run", "l", "--reason", "release 1.2", "--", "cat"}), around);
  p.tell("up\n");
  EXPECT_EQ(p.out.line(), "up");
  const auto info = shown("l");
  EXPECT_EQ(info["holders"][0]["pid"], p.pid());
  EXPECT_EQ(info["holders"][0]["reason"], "release 1.2");
  p.close_stdin();
  EXPECT_EQ(p.wait(), 0);
}

}  // namespace tool_test
