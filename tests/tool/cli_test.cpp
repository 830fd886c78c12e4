#include "tool/cli.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/temp_dir.hpp"
#include "paths.hpp"
#include "tool/failure.hpp"
#include "tool/help.hpp"

namespace holdfast::tool {

using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

command parsed_command(const words& w) { return *parse(w).command; }

run_options parsed_run(words options, const words& child = {"true"}) {
  options.insert(options.begin(), {"run", "deploy"});
  options.push_back("--");
  options.insert(options.end(), child.begin(), child.end());
  return std::get<run_options>(parsed_command(options).what);
}

struct refusal {
  int code = 0;
  std::string message;
};

refusal refused(const words& w) {
  try {
    parse(w);
  } catch (const failure_exit& e) {
    return {e.code(), e.what()};
  }
  return {0, "accepted"};
}

/// Refused with 64, in one line that contains the hint.
void expect_refused(const words& w, const std::string& hint) {
  const refusal r = refused(w);
  std::string line;
  for (const auto& word : w) line += word + ' ';
  EXPECT_EQ(r.code, 64) << line << ": " << r.message;
  EXPECT_EQ(r.message.find('\n'), std::string::npos) << r.message;
  EXPECT_NE(r.message.find(hint), std::string::npos) << line << ": " << r.message;
}

}  // namespace

TEST(cli, run_knows_the_letters_of_flock) {
  EXPECT_EQ(parsed_run({"-n"}).take.wait, one_try);
  EXPECT_EQ(parsed_run({"-w", "2.5"}).take.wait, 2500ms);
  EXPECT_EQ(parsed_run({"-w0"}).take.wait, one_try);
  EXPECT_EQ(parsed_run({"-s"}).take.lock.mode, lock_mode::read);
  EXPECT_EQ(parsed_run({"-x"}).take.lock.mode, lock_mode::write);
  EXPECT_EQ(parsed_run({"-E", "0"}).take.busy_code, 0);
  EXPECT_EQ(parsed_run({"-nE9"}).take.busy_code, 9);
}

TEST(cli, run_knows_the_long_names_of_flock) {
  EXPECT_EQ(parsed_run({"--nonblock"}).take.wait, one_try);
  EXPECT_EQ(parsed_run({"--nb"}).take.wait, one_try);
  EXPECT_EQ(parsed_run({"--timeout=1m"}).take.wait, 1min);
  EXPECT_EQ(parsed_run({"--wait", "1m"}).take.wait, 1min);
  EXPECT_EQ(parsed_run({"--shared"}).take.lock.mode, lock_mode::read);
  EXPECT_EQ(parsed_run({"--exclusive"}).take.lock.mode, lock_mode::write);
  EXPECT_EQ(parsed_run({"--conflict-exit-code=3"}).take.busy_code, 3);
}

TEST(cli, defaults_are_the_documented_ones) {
  const run_options r = parsed_run({});
  EXPECT_EQ(r.take.lock.mode, lock_mode::plain);
  EXPECT_EQ(r.take.wait, no_limit);
  EXPECT_EQ(r.take.busy_code, 75);
  EXPECT_EQ(r.take.ttl, 30s);
  EXPECT_EQ(r.min_hold, 0s);
  EXPECT_EQ(r.max_run, std::chrono::nanoseconds::max());
  EXPECT_FALSE(r.kill_after);
  EXPECT_EQ(r.on_lost, on_lost::term);
  EXPECT_EQ(r.lost_code, 79);
}

TEST(cli, only_the_first_two_dashes_end_the_options) {
  EXPECT_EQ(parsed_run({}, {"git", "log", "--", "-n"}).command, (words{"git", "log", "--", "-n"}));
  EXPECT_EQ(parsed_run({}, {"--"}).command, words{"--"});
}

TEST(cli, a_lock_may_be_called_like_a_command) {
  for (const std::string name : {"list", "run", "help", "demo"}) {
    const auto c = parsed_command({"run", name, "--", "true"});
    EXPECT_EQ(std::get<run_options>(c.what).take.lock.name, name);
  }
}

TEST(cli, other_commands_take_a_name_that_begins_with_a_dash_after_two_dashes) {
  EXPECT_EQ(std::get<show_options>(parsed_command({"show", "--", "-x"}).what).name, "-x");
}

TEST(cli, a_name_that_begins_with_a_dash_comes_behind_two_dashes_also_before_a_command) {
  const auto lock_of = [](const words& w) {
    const auto r = std::get<run_options>(parsed_command(w).what);
    EXPECT_EQ(r.command.front(), w.back() == "-x" ? "/bin/sh" : "cat");
    return r.take.lock.name;
  };
  EXPECT_EQ(lock_of({"run", "-n", "--", "-x", "--", "cat"}), "-x");
  EXPECT_EQ(lock_of({"run", "--", "--", "--", "cat", "--", "-n"}), "--");
  EXPECT_EQ(lock_of({"run", "--", "plain", "--", "cat"}), "plain") << "whatever a script has";
  EXPECT_EQ(lock_of({"run", "-c", "true", "--", "-x"}), "-x");
  EXPECT_EQ(lock_of({"elect", "--", "-x", "--", "cat"}), "-x");
  EXPECT_EQ(lock_of({"sem", "-n", "--", "-x", "3", "--", "cat"}), "-x");
  EXPECT_EQ(lock_of({"run", "x", "--", "cat", "--", "y"}), "x") << "the command has its own";
}

TEST(cli, an_option_that_may_be_given_again_takes_one_word_each_time) {
  const auto limit = [](const words& w) { return std::get<limit_options>(parsed_command(w).what); };
  EXPECT_EQ(limit({"limit", "--rate", "1/s", "--", "-x"}).name, "-x");
  EXPECT_EQ(limit({"limit", "--rate", "1/s", "x"}).name, "x");
  expect_refused({"limit", "x", "--rate", "1/s", "2/s"}, "'2/s' is one word too many");
  expect_refused({"serve", "--store", "sqlite:a", "sqlite:b"}, "one word too many");
}

TEST(cli, the_last_of_an_option_given_twice_counts) {
  EXPECT_EQ(parsed_run({"--ttl", "1m", "--ttl", "2m"}).take.ttl, 2min);
}

TEST(cli, a_command_string_goes_to_the_shell) {
  const auto c = parsed_command({"run", "deploy", "-c", "a | b"});
  EXPECT_EQ(std::get<run_options>(c.what).command, (words{"/bin/sh", "-c", "a | b"}));
}

TEST(cli, json_on_run_means_messages_because_stdout_is_the_childs) {
  EXPECT_EQ(parsed_command({"run", "x", "--json", "--", "true"}).common.format, log_format::json);
}

TEST(cli, the_reason_is_the_programs_name_without_its_arguments) {
  EXPECT_EQ(parsed_run({}, {"/opt/deploy.sh", "--password", "x"}).take.reason, "deploy.sh");
  EXPECT_EQ(parsed_run({"--reason", "v1.2"}, {"sh"}).take.reason, "v1.2");
}

TEST(cli, an_unknown_command_is_answered_with_the_nearest) {
  expect_refused({"rnu", "x"}, "did you mean run?");
  expect_refused({"lst"}, "did you mean list?");
  expect_refused({"force"}, "did you mean force-unlock?");
  expect_refused({"qqqqqq"}, "holdfast --help lists them");
  expect_refused({}, "there is no command");
  expect_refused({""}, "is not a command");
  expect_refused({"unlock", "x"}, "did you mean force-unlock?");
  expect_refused({"--store", "x", "list"}, "the command comes first");
}

TEST(cli, an_unknown_option_is_answered_with_the_nearest) {
  expect_refused({"run", "x", "--wiat", "3", "--", "true"}, "did you mean --wait?");
  expect_refused({"run", "x", "--max-rnu=3s", "--", "true"}, "did you mean --max-run?");
  expect_refused({"hold", "x", "--jsn"}, "did you mean --json?");
  expect_refused({"hold", "x", "--min-hold", "1s"},
                 "'--min-hold' is not an option of holdfast hold");
  expect_refused({"run", "x", "-q", "--", "true"}, "holdfast run --help lists them");
  for (const char* at_once : {"-n", "--nonblock"})
    expect_refused({"elect", "x", at_once, "--", "true"}, "-w 0 is one try");
}

TEST(cli, a_missing_or_extra_word_is_explained) {
  expect_refused({"run", "--", "true"}, "LOCK is required");
  expect_refused({"run", "x"}, "write: holdfast run LOCK -- CMD");
  expect_refused({"run", "x", "--"}, "write: holdfast run LOCK -- CMD");
  expect_refused({"run", "x", "true"}, "holdfast run LOCK -- true");
  expect_refused({"run", "x", "-c", "a", "--", "b"}, "two commands");
  expect_refused({"sem", "x", "3", "true"}, "holdfast sem NAME COUNT -- true …");
  expect_refused({"elect", "x", "true"}, "holdfast elect NAME -- true …");
  expect_refused({"list", "a", "b"}, "quote a pattern");
  expect_refused({"run", "x", "-w"}, "run: --wait: its DURATION is missing");
  expect_refused({"show", "a", "b"}, "'b' is one word too many");
  expect_refused({"try", "--", "x", "--"}, "'--' is one word too many");
  expect_refused({"hold", "x", "-vq"}, "'-q' is not an option of holdfast hold");
  expect_refused({"hold", "--", "-x", "--json"}, "'--json' is one word too many");
  expect_refused({"run", "-jobs", "--", "true"}, "holdfast run -- -NAME -- CMD");
  expect_refused({"show", "-jobs"}, "holdfast show -- -NAME");
  expect_refused({"run", "-n", "--", "git", "log", "--", "x"}, "LOCK is required");
  expect_refused({"sem", "x", "--", "true"}, "COUNT is required");
}

TEST(cli, every_option_with_a_value_refuses_impossible_values) {
  const auto run = [](const std::string& option, const std::string& value) {
    return words{"run", "x", option + "=" + value, "--", "true"};
  };
  for (const std::string option :
       {"--wait", "--timeout", "--min-hold", "--max-run", "--kill-after"})
    expect_refused(run(option, "5sec"), "did you mean 5s?");
  expect_refused(run("--ttl", "5sec"), "did you mean 5s?");
  expect_refused(run("--ttl", "1ms"), "the shortest lease is 100ms");
  expect_refused(run("--ttl", "0"), "the shortest lease is 100ms");
  expect_refused(run("--ttl", "32d"), "the longest lease is 31d");
  expect_refused(run("--slots", "0"), "did you mean 1?");
  expect_refused(run("--slots", "two"), "is not a whole number from 1");
  expect_refused(run("--slots", "-1"), "is not a whole number from 1");
  expect_refused(run("--slots", "99999999999"), "did you mean 1073741824?");
  expect_refused(run("--conflict-exit-code", "256"), "did you mean 255?");
  expect_refused(run("--lost-exit-code", "1.5"), "is not a whole number from 0 to 255");
  expect_refused(run("--on-lost", "trm"), "did you mean term?");
  expect_refused(run("--log-format", "jsn"), "did you mean json?");
  expect_refused(run("--color", "alway"), "did you mean always?");
  expect_refused(run("--reason", "a\x1b[2J"), "control characters");
  expect_refused(run("--reason", std::string(201, 'a')), "at most 200");
  expect_refused(run("--fence-file", "/nowhere/at/all"), "cannot write into /nowhere/at");
  expect_refused(run("--status-file", "/"), "is a directory");
  expect_refused({"list", "--sort", "agee"}, "did you mean age?");
  expect_refused({"force-unlock", "x", "--owner", "me"}, "8 hexadecimal digits");
  expect_refused({"try", "x", "-E", "-1"}, "whole number");
}

TEST(cli, an_address_to_listen_at_has_a_port) {
  EXPECT_EQ(std::get<serve_options>(parsed_command({"serve", "--listen", ":0"}).what).listen, ":0");
  for (const std::string bad : {"foo", "", ":", "foo:", ":http", ":65536", "::1", "::1:80"}) {
    const std::string good = "write :PORT, ADDRESS:PORT or [IPV6]:PORT";
    expect_refused({"serve", "--listen", bad}, good);
    expect_refused({"elect", "x", "--http", bad, "--", "true"}, good);
  }
  expect_refused({"serve", "--listen", "7440"}, "did you mean :7440?");
  for (const std::string good : {":80", "127.0.0.1:80", "[::1]:80", "web-1:80"})
    EXPECT_EQ(std::get<serve_options>(parsed_command({"serve", "--listen", good}).what).listen,
              good);
}

TEST(cli, an_option_without_its_value_is_refused) {
  for (const std::string option :
       {"--wait", "-w", "-E", "-c", "--slots", "--ttl", "--min-hold", "--max-run", "--kill-after",
        "--on-lost", "--lost-exit-code", "--fence-file", "--status-file", "--reason", "--store",
        "--color", "--log-format"})
    expect_refused({"run", "x", option}, " is missing; holdfast run --help shows");
}

TEST(cli, an_empty_value_is_not_the_default) {
  for (const std::string option :
       {"--wait", "--slots", "-E", "--ttl", "--min-hold", "--max-run", "--kill-after", "--on-lost",
        "--lost-exit-code", "--fence-file", "--status-file", "--store", "--color", "--log-format"})
    expect_refused({"run", "x", option, "", "--", "true"}, "");
  expect_refused({"limit", "x", "--rate", "1/s", "--key", ""}, "--key: the text is empty");
  expect_refused({"doctor", ""}, "the URL is empty");
  expect_refused({"serve", "--allow-unlock", "--token-file", ""},
                 "--token-file: the path is empty");
}

TEST(cli, a_flag_refuses_a_value) {
  for (const std::string flag : {"--fair", "--json", "--verbose", "--shared"})
    expect_refused({"run", "x", flag + "=maybe", "--", "true"}, "");
}

TEST(cli, options_that_contradict_each_other_are_refused) {
  expect_refused({"run", "x", "-n", "-w", "3", "--", "true"}, "exclude each other");
  expect_refused({"run", "x", "-s", "-x", "--", "true"}, "exclude each other");
  expect_refused({"run", "x", "--slots", "2", "-s", "--", "true"}, "exclude each other");
  expect_refused({"hold", "x", "--slots", "2", "-x"}, "exclude each other");
}

namespace {
words command_names() {
  words names;
  for (const command_help& c : all_commands()) names.emplace_back(c.name);
  return names;
}
}  // namespace

TEST(cli, every_option_of_every_command_is_in_its_help) {
  for (const std::string& name : command_names()) {
    const std::string help = parse(words{name, "--help"}).help;
    for (const auto& option : option_names(name))
      EXPECT_NE(help.find(option), std::string::npos) << name << ' ' << option;
    EXPECT_EQ(parse(words{"help", name}).help, help);
    EXPECT_EQ(help.find("\n\n\n"), std::string::npos) << name;
  }
  EXPECT_NE(parse(words{"--help"}).help.find("holdfast run LOCK"), std::string::npos);
  EXPECT_EQ(parse(words{"run", "--help"}).help.find("Excludes"), std::string::npos)
      << "of an older name, which help does not list";
}

TEST(cli, every_option_of_every_command_is_in_its_page) {
  std::ifstream file(HOLDFAST_SOURCE_DIR "/docs/cli.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const words everywhere{"--help", "-h"};
  for (const std::string& name : command_names())
    for (const auto& option : option_names(name)) {
      // Long names of flock are in the help only.
      const words of_flock{
          "--nonblock",           "--nb",      "--wait",    "--timeout", "--shared", "--exclusive",
          "--conflict-exit-code", "--command", "--verbose", "-y"};
      const auto listed = [&](const words& list) {
        return std::find(list.begin(), list.end(), option) != list.end();
      };
      if (listed(everywhere) || listed(of_flock)) continue;
      EXPECT_NE(text.find('`' + option), std::string::npos) << name << ' ' << option;
    }
}

TEST(cli, rates_are_tokens_a_time_and_a_burst) {
  const auto c = parsed_command({"limit", "x", "--rate", "10/s:20", "--rate", "600/1m30s"});
  const auto& rules = std::get<limit_options>(c.what).rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].tokens, 10u);
  EXPECT_EQ(rules[0].per, 1s);
  EXPECT_EQ(rules[0].burst, 20u);
  EXPECT_EQ(rules[1].per, 90s);
  for (const char* bad :
       {"", "10", "10/", "/s", "0/s", "x/s", "10/s:", "10/s:0", "-1/s", "1/5sec"}) {
    expect_refused({"limit", "x", "--rate", bad}, "");
  }
  for (const char* bad : {"2/0s", "2/0", "2/0s:3"})
    expect_refused({"limit", "x", "--rate", bad}, "no time in which the tokens come back");
  expect_refused({"limit", "x", "--rate", "1/32d"}, "the longest time of a rate is 31d");
  EXPECT_EQ(refused({"limit", "x", "--rate", "1/31d"}).message, "accepted");
  expect_refused({"limit", "x"}, "--rate is required");
  expect_refused({"limit", "x", "--rate", "1/s", "--peek", "--refund"}, "exclude each other");
  expect_refused({"limit", "x", "--rate", "1/s", "--peek", "--reset"}, "exclude each other");
}

TEST(cli, read_only_commands_have_their_own_times_and_words) {
  const auto w = std::get<watch_options>(
      parsed_command({"watch", "l", "--until", "free", "-d", "50ms", "-w", "3"}).what);
  EXPECT_EQ(w.until, "free");
  EXPECT_EQ(w.interval, 50ms);
  EXPECT_EQ(w.wait, 3s);
  expect_refused({"watch", "l", "--until", "fre"}, "did you mean free?");
  expect_refused({"watch", "l", "-d", "9ms"}, "at least 10ms");
  expect_refused({"top", "--sort", "holder"}, "is not one of name, kind, age");
  expect_refused({"graph", "--dot", "--json"}, "exclude each other");
  expect_refused({"completion", "csh"}, "is not one of bash, zsh, fish");
  expect_refused({"ping", "-c", "0", "-i", "0"}, "too short; at least 1ms");
}

TEST(cli, output_files_may_be_relative) {
  EXPECT_EQ(parsed_run({"--fence-file", "fence"}).fence_file, "fence");
  EXPECT_EQ(parsed_run({"--token-file", "fence"}).fence_file, "fence") << "its older name";
  const harness::temp_dir folder;
  EXPECT_EQ(parsed_run({"--status-file", folder.file("s.json")}).status_file,
            folder.file("s.json"));
}

}  // namespace holdfast::tool
