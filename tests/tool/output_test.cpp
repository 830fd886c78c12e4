#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/temp_dir.hpp"
#include "tool/exit_code.hpp"
#include "tool/fd.hpp"
#include "tool/json.hpp"
#include "tool/log.hpp"
#include "tool/output_file.hpp"
#include "tool/progress.hpp"
#include "tool/store_url.hpp"
#include "tool/tables.hpp"

namespace holdfast::tool {

using namespace std::chrono_literals;

namespace {

constexpr wall_time now{1'700'000'000s};

participant person(const std::string& host, std::uint32_t pid, std::chrono::seconds ago) {
  participant p;
  p.short_id = "0a1b2c3d";
  p.host = host;
  p.pid = pid;
  p.program = "job";
  p.reason = "nightly";
  p.fence = 9'007'199'254'740'993;
  p.since = now - ago;
  p.expires_in = 20s;
  return p;
}

name_info deploy() {
  name_info n;
  n.name = "deploy";
  n.kind = "mutex";
  n.capacity = 1;
  n.last_fence = 9'007'199'254'740'993;
  n.holders = {person("web-3", 812, 42s)};
  return n;
}

std::string read_some(int fd) {
  std::string bytes(4096, '\0');
  const ssize_t n = ::read(fd, bytes.data(), bytes.size());
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return bytes;
}

/// Acts as a full disk while it lives.
class most_bytes_of_a_file {
 public:
  explicit most_bytes_of_a_file(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  most_bytes_of_a_file(const most_bytes_of_a_file&) = delete;
  most_bytes_of_a_file& operator=(const most_bytes_of_a_file&) = delete;
  ~most_bytes_of_a_file() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST(progress_line, names_the_holder_and_our_position) {
  auto n = deploy();
  n.waiters = {person("web-1", 7, 9s), person("web-2", 55, 5s), person("web-1", 55, 1s)};
  EXPECT_EQ(waiting_line(n, {"web-1", 55}, now),
            "waiting for deploy · held by web-3 pid 812 for 42s · you are 3rd");
}

TEST(progress_line, counts_no_waiter_that_died) {
  auto n = deploy();
  n.waiters = {person("web-1", 7, 9s), person("web-2", 55, 5s), person("web-1", 55, 1s)};
  n.waiters.front().died = true;
  EXPECT_EQ(waiting_line(n, {"web-1", 55}, now),
            "waiting for deploy · held by web-3 pid 812 for 42s · you are 2nd");
}

TEST(progress_line, counts_the_other_holders) {
  auto n = deploy();
  n.holders.push_back(person("web-4", 1, 1s));
  n.holders.push_back(person("web-5", 1, 1s));
  EXPECT_EQ(waiting_line(n, {"here", 1}, now),
            "waiting for deploy · held by web-3 pid 812 for 42s and 2 more");
}

TEST(progress_line, cannot_be_used_to_write_to_the_terminal) {
  auto n = deploy();
  n.name = "a\x1b[2Jb";
  n.holders.front().host = "\x1b]0;owned\a";
  EXPECT_EQ(waiting_line(n, {}, now).find('\x1b'), std::string::npos);
}

TEST(human_output, escapes_all_texts_of_other_programs) {
  auto n = deploy();
  n.name = "a\x1b[2Jb";
  n.holders.front() = person("h\x1b[1m", 1, 1s);
  n.holders.front().reason = "r\x1b[1m";
  n.holders.front().program = "p\x1b[1m";
  n.waiters = n.holders;
  const std::vector<listed_name> names{{n, {}}, {n, "bad \x1b[1m"}};
  for (const std::string& text :
       {list_text(names, {}, now, true, false), show_text(n, {}, "sqlite:/x", {}, true, now, false),
        try_text(n, false, now)})
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

TEST(human_output, lists_a_name_in_one_row) {
  const std::vector<listed_name> names{{deploy(), {}}};
  EXPECT_EQ(list_text(names, {}, now, false, false),
            "NAME    KIND   HOLDER     HELD  LEASE  WAITING  REASON\n"
            "deploy  mutex  web-3:812  42s   20s             nightly\n");
  EXPECT_EQ(list_text({}, {}, now, false, false), "no names in use\n");
}

TEST(human_output, answers_try_in_one_line) {
  EXPECT_EQ(try_text(deploy(), false, now), "deploy is busy · held by web-3 pid 812 for 42s\n");
  auto several = deploy();
  several.holders.push_back(person("web-4", 1, 1s));
  EXPECT_EQ(try_text(several, false, now),
            "deploy is busy · held by web-3 pid 812 for 42s and 1 more\n");
  name_info unused;
  unused.name = "deploy";
  EXPECT_EQ(try_text(unused, true, now), "deploy is free\n");
}

TEST(json_output, gives_fences_as_strings_and_times_twice) {
  const auto j = nlohmann::json::parse(show_json(deploy(), {}, "sqlite:/x", {}, now));
  EXPECT_EQ(j["schema"], 1);
  EXPECT_EQ(j["lock"], "deploy");
  const auto& holder = j["holders"][0];
  EXPECT_EQ(holder["fence"], "9007199254740993");  // 2^53 + 1: a double would round it
  EXPECT_EQ(holder["held_seconds"], 42.0);
  EXPECT_EQ(holder["since"], "2023-11-14T22:12:38.000Z");
  EXPECT_EQ(holder["expires_in_seconds"], 20.0);
  EXPECT_EQ(holder["expires_at"], "2023-11-14T22:13:40.000Z");
  EXPECT_TRUE(j["promises"].contains("sees_death"));
  EXPECT_TRUE(j["promises"].contains("notices"));  // the former name
  EXPECT_EQ(j["promises"]["notifications"], j["promises"]["notices"]);
}

TEST(json_output, is_one_line_for_any_content_of_the_store) {
  auto n = deploy();
  n.name = "a\nb\xff";
  const std::string text = list_json(std::vector<listed_name>{{n, {}}}, "sqlite:/x", now);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_EQ(nlohmann::json::parse(text)["locks"].size(), 1U);
}

// People read JSON on a terminal, too.
TEST(json_output, moves_nothing_on_a_terminal_and_is_the_same_text) {
  const std::string hidden =
      "a\xc2\x9b"
      "31m\xe2\x80\xae\xf3\xa0\x81\x81\x7f\xe2\x80\xa8";
  const std::string seen = "\xc3\xbc\xe2\x82\xac\xf0\x9f\x94\x92";
  auto n = deploy();
  n.name = n.holders.front().reason = hidden + seen;
  for (const auto& text : {list_json(std::vector<listed_name>{{n, {}}}, "sqlite:/x", now),
                           show_json(n, {}, "sqlite:/x", {}, now)}) {
    for (const char* part :
         {"\xc2\x9b", "\xe2\x80\xae", "\xf3\xa0\x81\x81", "\x7f", "\xe2\x80\xa8"})
      EXPECT_EQ(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find(seen), std::string::npos) << text;
  }
  const auto j = nlohmann::json::parse(show_json(n, {}, "sqlite:/x", {}, now));
  EXPECT_EQ(j["lock"], n.name);
  EXPECT_EQ(j["holders"][0]["reason"], n.name);
}

TEST(human_output, lists_a_name_that_cannot_be_read_with_its_error) {
  listed_name bad;
  bad.info.name = "bad";
  bad.error = "damaged data";
  const std::vector<listed_name> names{bad, {deploy(), {}}};
  EXPECT_EQ(list_text(names, {}, now, false, false),
            "NAME    KIND        HOLDER     HELD  LEASE  WAITING  REASON\n"
            "bad     unreadable                                   damaged data\n"
            "deploy  mutex       web-3:812  42s   20s             nightly\n");
  const auto j = nlohmann::json::parse(list_json(names, "sqlite:/x", now))["locks"];
  EXPECT_EQ(j[0]["lock"], "bad");
  EXPECT_EQ(j[0]["error"], "damaged data");
  EXPECT_FALSE(j[0].contains("holders"));
  EXPECT_FALSE(j[1].contains("error"));
}

namespace {

/// A lock of another program, which shows nothing but a word.
name_info foreign() {
  auto n = deploy();
  n.last_fence = 0;
  n.holders.front() = {};
  n.holders.front().reason = "8743c9c0:1";
  n.holders.front().expires_in = 20s;
  return n;
}

}  // namespace

TEST(human_output, a_bucket_that_cannot_be_read_has_an_error_in_place_of_numbers) {
  holdfast::rate_bucket bad;
  bad.rule = "each";
  bad.key = {"acme"};
  bad.error = "the bucket is damaged";
  holdfast::name_info info;
  info.name = "api";
  info.kind = "rate_limiter";
  const std::vector<holdfast::rate_bucket> all{bad};
  const auto text = show_text(info, all, "redis://h/0", {}, false, {}, false);
  EXPECT_NE(text.find("unreadable"), text.npos) << text;
  EXPECT_NE(text.find(bad.error), text.npos) << text;
  const auto j = nlohmann::json::parse(show_json(info, all, "redis://h/0", {}, {}));
  EXPECT_EQ(j["buckets"],
            nlohmann::json::parse(
                R"([{"rule": "each", "key": ["acme"], "error": "the bucket is damaged"}])"));
}

TEST(human_output, only_the_promises_that_matter_for_its_kind_are_shown) {
  const auto shown = [](const char* kind, bool one_file = false) {
    holdfast::name_info info;
    info.name = "n";
    info.kind = kind;
    const std::string text = show_text(info, {}, "redis://h/0", {}, one_file, {}, false);
    return text.substr(std::min(text.find("what this store promises"), text.size()));
  };
  EXPECT_EQ(shown("rate_limiter"), "");
  for (const char* kind : {"latch", "barrier", "condition_variable"})
    EXPECT_EQ(shown(kind, true), "what this store promises\n  yes  waiters are notified\n") << kind;
  for (const char* kind : {"mutex", "shared_mutex", "semaphore", "election", ""})
    EXPECT_TRUE(
        shown(kind).ends_with("  yes  order of arrival across processes\n"
                              "  yes  one holder also when the store fails over\n"))
        << kind << shown(kind);
}

TEST(human_output, unknown_facts_of_a_holder_are_absent) {
  EXPECT_EQ(try_text(foreign(), false, now), "deploy is busy · held by another program\n");
  EXPECT_EQ(list_text(std::vector<listed_name>{{foreign(), {}}}, {}, now, false, false),
            "NAME    KIND   HOLDER           HELD  LEASE  WAITING  REASON\n"
            "deploy  mutex  another program        20s             8743c9c0:1\n");
  const auto text = show_text(foreign(), {}, "redis://h/0", {}, false, now, false);
  for (const char* unknown : {"1970", "20779d", "token:"})
    EXPECT_EQ(text.find(unknown), text.npos) << text;
}

TEST(json_output, unknown_facts_of_a_holder_are_absent) {
  const auto j = nlohmann::json::parse(show_json(foreign(), {}, "redis://h/0", {}, now));
  EXPECT_FALSE(j.contains("last_fence"));
  const auto holder = j["holders"][0];
  for (const char* unknown : {"owner", "host", "pid", "program", "fence", "since", "held_seconds"})
    EXPECT_FALSE(holder.contains(unknown)) << unknown;
  EXPECT_EQ(holder["reason"], "8743c9c0:1");
  EXPECT_EQ(holder["expires_in_seconds"], 20.0);
  auto endless = foreign();
  endless.holders.front().expires_in.reset();
  const auto lasts = nlohmann::json::parse(show_json(endless, {}, "redis://h/0", {}, now));
  EXPECT_FALSE(lasts["holders"][0].contains("expires_in_seconds"));
  EXPECT_FALSE(lasts["holders"][0].contains("expires_at"));
  EXPECT_EQ(list_text(std::vector<listed_name>{{endless, {}}}, {}, now, false, false),
            "NAME    KIND   HOLDER           HELD  LEASE  WAITING  REASON\n"
            "deploy  mutex  another program                        8743c9c0:1\n");
  leader nobody;
  nobody.note = "x";
  const auto leads = nlohmann::json::parse(leader_json("e", std::optional(nobody)))["leader"];
  for (const char* unknown : {"host", "pid", "program", "since"})
    EXPECT_FALSE(leads.contains(unknown)) << unknown;
  const auto away = nlohmann::json::parse(leader_json("e", failure{errc::unavailable, "no store"}));
  EXPECT_FALSE(away.contains("leader")) << "that nobody leads is not known";
  EXPECT_EQ(away["error"], "no store");
}

TEST(messages, in_json_move_nothing_on_a_terminal) {
  const auto ends = make_pipe();
  common_options how;
  how.format = log_format::json;
  const std::string hidden =
      "\xc2\x9b"
      "31m\xe2\x80\xae";
  class log to(how, ends.write.get());
  to.write(level::warning, "busy", hidden, {{"lock", hidden}});
  const std::string line = read_some(ends.read.get());
  EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos) << line;
  EXPECT_EQ(line.find("\xe2\x80\xae"), std::string::npos) << line;
  EXPECT_EQ(nlohmann::json::parse(line)["message"], hidden);
  EXPECT_EQ(nlohmann::json::parse(line)["lock"], hidden);
}

// The first is more than the pipe takes at once.
TEST(messages, that_are_not_read_never_block_and_arrive_whole_or_not_at_all) {
  const auto ends = make_pipe();
  const int fd = ends.read.get();
  ASSERT_EQ(::fcntl(ends.write.get(), F_SETPIPE_SZ, 4096), 4096);
  common_options how;
  how.format = log_format::json;
  class log to(how, ends.write.get());
  to.write(level::warning, "first", "m", {{"lock", std::string(5000, 'x')}});
  to.write(level::warning, "dropped", "m");
  std::string read;
  while (!read.ends_with('\n')) read += read_some(fd);
  pollfd heard{fd, POLLIN, 0};
  while (::poll(&heard, 1, 0) == 0) to.write(level::warning, "last", "m");
  read += read_some(fd);
  std::istringstream lines(read);
  std::string line;
  for (const char* event : {"first", "last"}) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(nlohmann::json::parse(line)["event"], event);
  }
}

TEST(messages, a_line_that_found_no_room_does_not_spoil_the_next) {
  const harness::temp_dir folder;
  const unique_fd file{
      ::open(folder.file("log").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600)};
  class log to(common_options{}, file.get());
  {
    const most_bytes_of_a_file room{12};
    to.write(level::warning, "first", "torn");
  }
  to.write(level::warning, "second", "whole");
  EXPECT_EQ(slurp(folder.file("log")), "holdfast: to\nholdfast: whole\n");
}

TEST(store_url, secrets_are_overwritten_in_the_arguments_but_not_in_the_childs) {
  std::string words[]{"run",
                      "a:b@c",
                      "--store=redis://u:sec/ret@h",
                      "--store",
                      "redis:u:secret@h",
                      "--store",
                      "postgres://h/db?listen=postgres://u:secret%40h2",
                      "redis://secret@h",
                      "--",
                      "redis://u:secret@h"};
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  blank_secrets(argv);
  EXPECT_EQ(words[1], "a:b@c");
  EXPECT_EQ(words[2], "--store=redis://u:*******@h");
  EXPECT_EQ(words[4], "redis:********@h");
  EXPECT_EQ(words[6], "postgres://h/db?listen=" + std::string(24, '*'));
  EXPECT_EQ(words[7], "redis://******@h");
  EXPECT_EQ(words[9], "redis://u:secret@h");
}

TEST(store_url, a_word_of_the_command_line_is_quoted_without_secrets_and_not_at_length) {
  EXPECT_EQ(quotable("redis://u:secret@h"), "redis://u:***@h");
  EXPECT_EQ(quotable("--stor=redis://u:secret@h"), "--stor=redis://u:***@h");
  EXPECT_EQ(quotable("a:b@c"), "a:b@c");
  EXPECT_LT(quotable(std::string(20'000, 'x')).size(), 200U);
}

TEST(store_url, of_a_file_is_good_in_every_folder) {
  char here[4096];
  ASSERT_NE(::getcwd(here, sizeof here), nullptr);
  EXPECT_EQ(url_for_others("sqlite:a/b.db?network=allow"),
            std::string("sqlite:") + here + "/a/b.db?network=allow");
  EXPECT_EQ(url_for_others("sqlite:/a/b.db"), "sqlite:/a/b.db");
  EXPECT_EQ(url_for_others("SQLITE:///a/./c/../b.db?mode=x"), "sqlite:/a/b.db?mode=x");
  EXPECT_EQ(url_for_others("sqlite:/a/b%3F%25%20c.db"), "sqlite:/a/b%3F%25%20c.db");
  for (const std::string none : {"sqlite:", "sqlite", "sqlite://h/x", "sqlite:~/x", "sqlite:%zz"})
    EXPECT_EQ(url_for_others(none), none);
  EXPECT_EQ(url_for_others("file:a"), std::string("file:") + here + "/a");
  EXPECT_EQ(url_for_others("redis://u:secret@h/0"), "redis://u:***@h/0");
  EXPECT_EQ(url_for_others("memory:x"), "memory:x");
}

// The name of the file is extracted from the URL as open() does it.
TEST(store_url, of_a_file_is_the_url_that_open_reads) {
  const harness::temp_dir dir;
  const std::string folder = dir.path().string();
  ASSERT_EQ(::mkdir((folder + "/a b").c_str(), 0700), 0);
  std::ofstream(folder + "/a b/100%") << "redis://u:secret@h/0\r\nmore\n";
  for (const std::string scheme : {"file:", "file://", "FILE:"})
    EXPECT_EQ(url_of_store(scheme + folder + "/a%20b/100%25"), "redis://u:secret@h/0") << scheme;
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  for (const std::string& itself :
       {"file:" + folder + "/none", "file:" + folder + "/pipe", std::string("redis://u:secret@h/0"),
        std::string("file:"), std::string("no url")})
    EXPECT_EQ(url_of_store(itself), itself);
}

TEST(exit_code, of_every_failure_is_in_the_documented_table) {
  using enum errc;
  for (const errc e : {busy, timed_out, overloaded}) EXPECT_EQ(exit_code::of(e), 75);
  for (const errc e : {unavailable, no_space, corrupt}) EXPECT_EQ(exit_code::of(e), 69);
  for (const errc e : {not_permitted, read_only}) EXPECT_EQ(exit_code::of(e), 77);
  for (const errc e : {kind_mismatch, capacity_mismatch, unsupported, foreign_data, newer_format})
    EXPECT_EQ(exit_code::of(e), 78);
  for (const errc e : {invalid_name, invalid_argument}) EXPECT_EQ(exit_code::of(e), 64);
  for (const errc e : {internal, forked, deadlock, not_owner, cancelled})
    EXPECT_EQ(exit_code::of(e), 125);
  EXPECT_EQ(exit_code::of(lost), 79);
}

TEST(exit_code, of_a_failed_exec_is_that_of_env) {
  EXPECT_EQ(exit_code::of_exec(ENOENT), 127);
  EXPECT_EQ(exit_code::of_exec(EACCES), 126);
  EXPECT_EQ(exit_code::of_exec(ENOEXEC), 126);
}

TEST(color, follows_the_option_then_the_environment_then_the_terminal) {
  const pipe_ends p = make_pipe();
  const int fd = p.write.get();
  ::unsetenv("NO_COLOR");
  ::unsetenv("CLICOLOR_FORCE");
  EXPECT_FALSE(use_color(color_when::automatic, fd));
  EXPECT_TRUE(use_color(color_when::always, fd));
  ::setenv("CLICOLOR_FORCE", "1", 1);
  EXPECT_TRUE(use_color(color_when::automatic, fd));
  EXPECT_FALSE(use_color(color_when::never, fd));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(use_color(color_when::automatic, fd));
  EXPECT_TRUE(use_color(color_when::always, fd));
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(use_color(color_when::automatic, fd));
  ::unsetenv("NO_COLOR");
  ::unsetenv("CLICOLOR_FORCE");
}

std::size_t files_in(const harness::temp_dir& folder) {
  const std::filesystem::directory_iterator all(folder.path());
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(output_file, is_written_despite_leftovers_of_a_killed_program_of_this_number) {
  const harness::temp_dir folder;
  std::ofstream(folder.file("token.new-" + std::to_string(::getpid()))) << "left";
  EXPECT_EQ(replace_file(folder.file("token"), "1\n"), "");
  EXPECT_EQ(slurp(folder.file("token")), "1\n");
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(output_file, leaves_nothing_where_there_is_no_room) {
  const harness::temp_dir folder;
  {
    const most_bytes_of_a_file none{0};
    EXPECT_NE(replace_file(folder.file("token"), "1\n"), "");
  }
  EXPECT_EQ(files_in(folder), 0U);
}

// As /dev/stdout, in a folder of this test's own.
TEST(output_file, that_is_open_is_written_to_and_its_link_stays) {
  const harness::temp_dir folder;
  const std::string file = folder.file("log"), link = folder.file("stdout");
  const int fd = ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);  // as `> log`
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::write(fd, "before\n", 7), 7);
  const std::string open_file = "/proc/self/fd/" + std::to_string(fd);
  std::filesystem::create_symlink(open_file, link);
  EXPECT_EQ(replace_file(link, "1\n"), "");
  EXPECT_EQ(replace_file(open_file, "2\n"), "");
  EXPECT_EQ(::write(fd, "behind\n", 7), 7);
  ::close(fd);
  EXPECT_EQ(slurp(file), "before\n1\n2\nbehind\n");
  EXPECT_EQ(std::filesystem::read_symlink(link), open_file);
  EXPECT_EQ(files_in(folder), 2U);
}

TEST(output_file, that_a_link_of_ours_leads_to_is_replaced_and_the_link_stays) {
  const harness::temp_dir folder;
  const std::string file = folder.file("token"), link = folder.file("link");
  std::filesystem::create_symlink("token", link);
  EXPECT_EQ(replace_file(link, "1\n"), "");
  EXPECT_EQ(replace_file(link, "2\n"), "");
  EXPECT_EQ(slurp(file), "2\n");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST(output_file, is_not_where_a_link_of_another_user_leads) {
  if (::geteuid() != 0) return;  // only root can give a link away
  const harness::temp_dir folder;
  const std::string file = folder.file("theirs"), link = folder.file("link");
  std::ofstream(file) << "kept";
  std::filesystem::create_symlink(file, link);
  ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
  EXPECT_EQ(replace_file(link, "1\n"), "");
  EXPECT_EQ(slurp(file), "kept");
  EXPECT_EQ(slurp(link), "1\n");
}

TEST(output_file, replaces_the_whole_content_or_nothing) {
  const harness::temp_dir folder;
  const std::string path = folder.file("token");
  EXPECT_EQ(replace_file(path, "1\n"), "");
  EXPECT_EQ(replace_file(path, "22\n"), "");
  EXPECT_EQ(slurp(path), "22\n");
  EXPECT_NE(replace_file(folder.file("no/such"), "x"), "");
  EXPECT_EQ(files_in(folder), 1U);
}

}  // namespace holdfast::tool
