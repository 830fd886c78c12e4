#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/redis_server.hpp"
#include "tool/fixture.hpp"

// hold, try, list, show, force-unlock, version; systemd.
namespace tool_test {

namespace {

using nlohmann::json;

class other_commands : public holdfast_tool {};

/// The manager's view of a Type=notify unit.
class systemd {
 public:
  explicit systemd(std::string path) : path_(std::move(path)) {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::copy(path_.begin(), path_.end(), at.sun_path);
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
      throw std::runtime_error(std::strerror(errno));
  }
  ~systemd() { ::close(fd_); }
  std::string hear() const { return receive(0); }
  /// Empty if nothing has come.
  std::string hear_now() const { return receive(MSG_DONTWAIT); }
  const std::string& path() const { return path_; }

 private:
  std::string receive(int flags) const {
    char buffer[4096];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, flags);
    return {buffer, n < 0 ? 0 : static_cast<std::size_t>(n)};
  }

  std::string path_;
  int fd_;
};

}  // namespace

TEST_F(other_commands, hold_prints_one_json_line_when_it_has_the_lock) {
  holder h(*this, {"l", "--ttl", "20s", "--reason", "testing"});
  EXPECT_EQ(h.facts["schema"], 1);
  EXPECT_EQ(h.facts["event"], "acquired");
  EXPECT_EQ(h.facts["lock"], "l");
  EXPECT_TRUE(h.facts["fence"].is_string());
  EXPECT_EQ(h.facts["lease_seconds"], 20.0);
  EXPECT_EQ(h.facts["store"], store);
  const auto info = shown("l");
  EXPECT_EQ(info["holders"][0]["owner"], h.facts["owner"]);
  EXPECT_EQ(info["holders"][0]["fence"], h.facts["fence"]);
  EXPECT_EQ(info["holders"][0]["reason"], "testing");
}

TEST_F(other_commands, hold_releases_when_stdin_ends) {
  holder h(*this, {"l"});
  h.process.tell("ignored\n");
  EXPECT_EQ(tool({"try", "l"}).code, 75);
  EXPECT_EQ(h.let_go(), 0);
  EXPECT_EQ(json::parse(h.process.out.line())["event"], "released");
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(other_commands, hold_does_not_take_dev_null_for_an_end) {
  around.null_stdin = true;
  holder h(around, {"l"});
  EXPECT_EQ(tool({"try", "l"}).code, 75);
  h.process.signal(SIGTERM);
  EXPECT_EQ(h.process.wait(), 0);
}

TEST_F(other_commands, hold_exits_with_75_when_the_lock_is_busy) {
  const holder h(*this, {"l"});
  EXPECT_EQ(tool({"hold", "l", "-n"}).code, 75);
  EXPECT_EQ(tool({"hold", "l", "-n", "-E", "3"}).code, 3);
  EXPECT_EQ(tool({"hold", "l", "-n", "--json"}).out, "");
}

TEST_F(other_commands, hold_releases_when_its_output_is_not_read) {
  holder first(*this, {"l"});
  around.null_stdin = true;
  program p(command({"hold", "l"}), around);
  wait_for_waiter("l");
  p.out = {};  // closes our end of its stdout
  EXPECT_EQ(first.let_go(), 0);
  EXPECT_EQ(p.wait(), 125);
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(other_commands, that_cannot_print_exit_with_125) {
  for (const words& what : {words{"list"},
                            {"show", "l"},
                            {"try", "l"},
                            {"hold", "l"},
                            {"--version"},
                            {"--help"},
                            {"limit", "api", "--rate", "1/1d"},
                            {"metrics"}}) {
    const auto r = run_to_end(with_closed_stdout(command(what)), around);
    EXPECT_EQ(r.code, 125) << what.front();
    EXPECT_EQ(r.err, "holdfast: cannot write to stdout: Bad file descriptor\n") << what.front();
  }
  EXPECT_EQ(tool({"try", "l"}).code, 0) << "hold gave it back";
}

TEST_F(other_commands, a_password_is_not_seen_in_the_process_list) {
  const holder h(*this, {"l", "--store", "redis://me:hun/ter2@x?listen=postgres://y:hunter2%40z",
                         "--store", store});
  std::ifstream file("/proc/" + std::to_string(h.process.pid()) + "/cmdline");
  std::string words_of_it;
  std::getline(file, words_of_it);
  EXPECT_NE(words_of_it.find("redis://me:********@x?listen=**"), std::string::npos);
  EXPECT_EQ(words_of_it.find("ter2"), std::string::npos);
}

TEST_F(other_commands, a_password_on_the_command_line_is_warned_about_and_not_repeated) {
  const auto url = "redis://me:hunter2@127.0.0.1:" + std::to_string(harness::free_port());
  const auto r = tool({"try", "l", "--store", url});
  EXPECT_EQ(r.code, 69) << r.err;
  EXPECT_NE(r.err.find("on the command line has a password"), std::string::npos) << r.err;
  EXPECT_EQ((r.out + r.err).find("hunter2"), std::string::npos) << r.err;
  const auto extra = tool({"try", "l", url});
  EXPECT_EQ(extra.code, 64);
  EXPECT_EQ(extra.err.find("hunter2"), std::string::npos) << extra.err;
}

TEST_F(other_commands, refuse_a_store_that_no_other_process_sees) {
  const std::vector<words> all{{"run", "l", "--", "true"},
                               {"sem", "l", "3", "--", "true"},
                               {"elect", "l", "--", "true"},
                               {"hold", "l"},
                               {"try", "l"},
                               {"list"},
                               {"show", "l"},
                               {"force-unlock", "l", "--yes"},
                               {"limit", "l", "--rate", "1/s"},
                               {"latch", "l", "1", "--down", "1"},
                               {"barrier", "l", "1"}};
  around.environment[0] = "HOLDFAST_STORE=memory:shared";
  for (const auto& arguments : all) {
    const auto r = tool(arguments);
    EXPECT_EQ(r.code, 78) << arguments.front();
    EXPECT_NE(r.err.find("exists inside one process"), std::string::npos) << r.err;
  }
}

TEST_F(other_commands, the_url_may_be_in_a_file) {
  std::ofstream(folder.file("store")) << store << "\nanything\n";
  const holder h(*this, {"l", "--store", "file:" + folder.file("store")});
  EXPECT_EQ(tool({"try", "l"}).code, 75);
  EXPECT_EQ(h.facts["store"], store) << "what others call it";
  EXPECT_EQ(tool({"try", "l", "--store", "file:" + folder.file("none")}).code, 64);
}

TEST_F(other_commands, a_name_of_any_length_makes_a_short_message) {
  const std::string name(20'000, 'n');
  for (const words& arguments :
       {words{"try", name}, words{"run", name, "--", "true"}, words{"hold", name},
        words{"sem", name, "2", "--", "true"}, words{"elect", name, "--", "true"},
        words{"latch", name, "1"}, words{"barrier", name, "1"},
        words{"limit", name, "--rate", "1/s"}, words{"show", name}, words{"watch", name},
        words{"force-unlock", name, "--yes"}, words{"run", "l", name}, words{name}}) {
    const auto r = tool(arguments);
    EXPECT_EQ(r.code, 64) << arguments.front() << ": " << r.err;
    EXPECT_LT(r.err.size(), 2'000U) << arguments.front();
  }
}

TEST_F(other_commands, a_name_that_no_lock_can_have_is_reported_by_the_command_that_was_given) {
  for (const words& asks :
       {words{"show", ""}, {"try", ""}, {"watch", ""}, {"force-unlock", "", "--yes"}}) {
    const auto refused = tool(asks);
    EXPECT_EQ(refused.code, 64);
    EXPECT_EQ(refused.err, "holdfast: " + asks.front() + " on " + store +
                               ": invalid name: a name needs at least one byte\n");
  }
}

TEST_F(other_commands, try_in_another_mode_names_the_option_to_use) {
  const holder reader(*this, {"r", "-s"}), permit(*this, {"s", "--slots", "2"}),
      plain(*this, {"m"});
  EXPECT_EQ(tool({"try", "s", "-s"}).err,
            "holdfast: s is in use as a semaphore of 2; ask with --slots 2\n");
  EXPECT_EQ(tool({"try", "r", "--slots", "2"}).err,
            "holdfast: r is in use as a shared_mutex; ask with -s or -x\n");
  EXPECT_EQ(tool({"try", "m", "-s"}).err,
            "holdfast: m is in use as a mutex; ask without -s, -x and --slots\n");
}

TEST_F(other_commands, try_takes_nothing) {
  EXPECT_EQ(tool({"try", "l"}).code, 0);
  EXPECT_EQ(tool({"try", "l"}).code, 0);
  EXPECT_TRUE(json::parse(tool({"list", "--json"}).out)["locks"].empty());
}

TEST_F(other_commands, try_answers_for_the_requested_mode) {
  holder reader(*this, {"l", "-s"});
  EXPECT_EQ(tool({"try", "l", "-s"}).code, 0);
  EXPECT_EQ(tool({"try", "l", "-x"}).code, 75);
  EXPECT_EQ(tool({"try", "l"}).code, 75);
  const holder first(*this, {"s", "--slots", "2"});
  EXPECT_EQ(tool({"try", "s", "--slots", "2"}).code, 0);
  const holder second(*this, {"s", "--slots", "2"});
  EXPECT_EQ(tool({"try", "s", "--slots", "2"}).code, 75);
  EXPECT_EQ(tool({"try", "s", "--slots", "3"}).code, 78);
  EXPECT_EQ(tool({"try", "s", "-s"}).code, 78);
  EXPECT_EQ(tool({"try", "s", "--slots", "2", "-E", "4"}).code, 4);
}

TEST_F(other_commands, try_of_a_name_with_holders_says_which_use_is_free) {
  const holder reader(*this, {"r", "-s"}), permit(*this, {"s", "--slots", "3"});
  const std::string shared = tool({"try", "r", "-s"}).out;
  EXPECT_TRUE(shared.starts_with("r is free for another reader · held by ")) << shared;
  for (const words& arguments : {words{"try", "s", "--slots", "3"}, {"try", "s"}}) {
    const std::string permits = tool(arguments).out;
    EXPECT_TRUE(
        permits.starts_with("s is free for another holder (2 of 3 permits left) · held by "))
        << permits;
  }
}

TEST_F(other_commands, try_of_an_election_names_its_kind) {
  program leader(command({"elect", "boss", "--", "cat"}), around);
  harness::eventually("it leads", [&] { return tool({"try", "boss"}).code == 75; });
  EXPECT_EQ(tool({"try", "boss", "-s"}).err,
            "holdfast: boss is in use as an election; ask without -s, -x and --slots\n");
  leader.signal(SIGTERM);
  leader.wait();
}

TEST_F(other_commands, try_names_the_holder_in_json) {
  const holder h(*this, {"l"});
  const auto r = tool({"try", "l", "--json"});
  EXPECT_EQ(r.code, 75);
  const auto j = json::parse(r.out);
  EXPECT_EQ(j["free"], false);
  EXPECT_EQ(j["holders"][0]["pid"], h.process.pid());
}

TEST_F(other_commands, list_shows_used_names) {
  const holder a(*this, {"shop:1"});
  const holder b(*this, {"shop:2", "--slots", "3"});
  const holder c(*this, {"other"});
  const auto all = json::parse(tool({"list", "--json"}).out);
  EXPECT_EQ(all["schema"], 1);
  ASSERT_EQ(all["locks"].size(), 3U);
  const auto some = json::parse(tool({"list", "shop:*", "--json"}).out);
  ASSERT_EQ(some["locks"].size(), 2U);
  EXPECT_EQ(some["locks"][1]["kind"], "semaphore");
  EXPECT_EQ(some["locks"][1]["remaining"], 2);
  const std::string text = tool({"list"}).out;
  for (const std::string word : {"NAME", "shop:1", "shop:2", "other", "semaphore 1/3"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST_F(other_commands, list_can_show_only_names_with_waiters) {
  const holder a(*this, {"a"});
  const holder b(*this, {"b"});
  program waiter(command({"run", "b", "--", "true"}), around);
  wait_for_waiter("b");
  const auto waiting = json::parse(tool({"list", "--waiting", "--json"}).out)["locks"];
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0]["lock"], "b");
  const auto sorted = json::parse(tool({"list", "--sort", "waiters", "--json"}).out)["locks"];
  EXPECT_EQ(sorted[0]["lock"], "b");
  const auto by_age = json::parse(tool({"list", "--sort=age", "--json"}).out)["locks"];
  EXPECT_EQ(by_age[0]["lock"], "a");
  EXPECT_EQ(json::parse(tool({"list", "--held", "--json"}).out)["locks"].size(), 2U);
}

TEST_F(other_commands, list_of_an_unused_store_is_empty_and_fine) {
  const auto r = tool({"list"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "no names in use\n");
}

TEST_F(other_commands, list_and_top_say_if_a_filter_hides_all_names) {
  const holder h(*this, {"l"});
  const std::vector<std::pair<words, std::string>> cases{
      {{"shop:*"}, "no name in use matches shop:*\n"},
      {{"--waiting"}, "no name in use has waiters\n"},
      {{""}, "no name in use matches \"\"\n"},
      {{"x", "--held"}, "no name in use matches x and is held\n"},
      {{"x\n", "--held", "--waiting"},
       "no name in use matches \"x\\n\" and is held and has waiters\n"}};
  for (const auto& [filter, said] : cases) {
    words list{"list"}, top{"top", "--once"};
    list.insert(list.end(), filter.begin(), filter.end());
    top.insert(top.end(), filter.begin(), filter.end());
    EXPECT_EQ(tool(list).out, said);
    EXPECT_EQ(tool(top).out, said);
  }
  EXPECT_EQ(tool({"graph", "shop:*"}).out,
            "no process waits for another, for a name that matches shop:*\n");
}

TEST_F(other_commands, show_tells_everything_about_one_name) {
  const holder h(*this, {"l", "--reason", "why not"});
  const std::string text = tool({"show", "l"}).out;
  for (const std::string word : {"l: mutex", "OWNER", "FENCE", "last fence: ", "why not",
                                 "what this store promises", "there is no failover"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
  const auto j = shown("l");
  EXPECT_EQ(j["kind"], "mutex");
  EXPECT_EQ(j["promises"]["fences"], true);
  EXPECT_NE(tool({"show", "unused"}).out.find("not in use"), std::string::npos);
}

TEST_F(other_commands, show_tells_the_promises_of_the_store_that_a_file_names) {
  const std::string file = folder.file("store.url");
  std::ofstream(file) << store << '\n';
  const std::string text = tool({"show", "l", "--store", "file:" + file}).out;
  EXPECT_NE(text.find("there is no failover"), std::string::npos) << text;
}

TEST_F(other_commands, force_unlock_needs_a_yes_without_a_terminal) {
  const holder h(*this, {"l"});
  const auto r = tool({"force-unlock", "l"});
  EXPECT_EQ(r.code, 64);
  EXPECT_NE(r.err.find("--yes"), std::string::npos) << r.err;
  EXPECT_EQ(tool({"try", "l"}).code, 75);
}

TEST_F(other_commands, force_unlock_lets_the_next_waiter_in) {
  const holder h(*this, {"l"});
  program waiter(command({"run", "l", "--", "echo", "ran"}), around);
  wait_for_waiter("l");
  const auto r = tool({"force-unlock", "l", "--yes", "--json", "--reason", "stuck"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(json::parse(r.out)["removed"], 1);
  EXPECT_EQ(json::parse(r.out)["reason"], "stuck");
  EXPECT_EQ(waiter.out.line(), "ran");
}

TEST_F(other_commands, force_unlock_compares_the_owner) {
  const holder h(*this, {"l"});
  const std::string owner = h.facts["owner"];
  const std::string another = owner == "00000000" ? "11111111" : "00000000";
  EXPECT_EQ(tool({"force-unlock", "l", "--yes", "--owner", another}).code, 75);
  EXPECT_EQ(tool({"try", "l"}).code, 75);
  EXPECT_EQ(tool({"force-unlock", "l", "--yes", "--owner", owner}).code, 0);
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(other_commands, force_unlock_of_one_owner_leaves_the_others_alone) {
  const holder stays(*this, {"l", "-s"});
  const holder goes(*this, {"l", "-s"});
  EXPECT_EQ(tool({"force-unlock", "l", "--yes", "--owner", goes.facts["owner"]}).code, 0);
  const auto left = shown("l")["holders"];
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0]["owner"], stays.facts["owner"]);
}

TEST_F(other_commands, force_unlock_of_a_free_lock_does_nothing) {
  const auto r = tool({"force-unlock", "l", "--yes"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "l was not held\n");
}

TEST_F(other_commands, force_unlock_asks_at_a_terminal) {
  const holder h(*this, {"l"});
  surroundings terminal = around;
  terminal.on_terminal = true;
  {
    program p(command({"force-unlock", "l"}), terminal);
    p.out.until("Type yes: ");
    p.tell("no\n");
    EXPECT_EQ(p.wait(), 1);
    EXPECT_EQ(tool({"try", "l"}).code, 75);
  }
  program p(command({"force-unlock", "l"}), terminal);
  p.out.until("Type yes: ");
  p.tell("yes\n");
  p.out.until("taken away from 1 holder");
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(tool({"try", "l"}).code, 0);
}

TEST_F(other_commands, force_unlock_takes_nothing_from_a_holder_that_came_after_the_question) {
  holder named(*this, {"l"});
  surroundings terminal = around;
  terminal.on_terminal = true;
  program p(command({"force-unlock", "l"}), terminal);
  p.out.until("checks fences refuses its writes");
  p.out.until("Type yes: ");
  named.let_go();
  const holder came(*this, {"l"});
  p.tell("yes\n");
  p.out.until("l has another holder by now: nothing was changed");
  EXPECT_EQ(p.wait(), 1);
  EXPECT_EQ(shown("l")["holders"][0]["owner"], came.facts["owner"]);
}

TEST_F(other_commands, version_names_the_stores_that_are_built_in) {
  std::string line = "stores: memory sqlite";
  std::vector<std::string> built_in{"memory", "sqlite"};
  for (const std::string store :
       {"redis", "postgres", "mariadb", "zookeeper", "etcd", "memcached"}) {
    const auto r = tool({"try", "l", "--store", store + ":"});
    if (r.err.find("built without") != std::string::npos) continue;
    line += ' ' + store;
    built_in.push_back(store);
  }
  const auto j = json::parse(tool({"--version", "--json"}).out);
  EXPECT_EQ(j["schema"], 1);
  EXPECT_EQ(j["stores"].get<std::vector<std::string>>(), built_in);
  EXPECT_EQ(tool({"version"}).out,
            "holdfast " + j["version"].get<std::string>() + '\n' + line + '\n');
}

TEST_F(other_commands, help_is_on_stdout_and_no_command_is_a_usage_error) {
  EXPECT_EQ(tool({"--help"}).code, 0);
  EXPECT_NE(tool({"--help"}).out.find("holdfast run LOCK"), std::string::npos);
  EXPECT_NE(tool({"run", "--help"}).out.find("--kill-after"), std::string::npos);
  EXPECT_EQ(tool({}).code, 64);
}

TEST_F(other_commands, systemd_is_notified_of_acquisition_and_release) {
  const systemd manager(folder.file("notify"));
  around.environment.push_back("NOTIFY_SOCKET=" + manager.path());
  EXPECT_EQ(tool({"run", "l", "--", "true"}).code, 0);
  EXPECT_EQ(manager.hear(), "STATUS=waiting for l");
  EXPECT_TRUE(manager.hear().starts_with("READY=1\nSTATUS=holding l, fence "));
  EXPECT_EQ(manager.hear(), "STOPPING=1");
}

TEST_F(other_commands, systemd_gets_a_sign_of_life_after_each_renewal) {
  const systemd manager(folder.file("notify"));
  around.environment.push_back("NOTIFY_SOCKET=" + manager.path());
  around.environment.push_back("WATCHDOG_USEC=10000000");
  program p(command({"run", "l", "--ttl", "3s", "--", "cat"}), around);
  manager.hear();
  manager.hear();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(manager.hear(), "WATCHDOG=1");
  p.close_stdin();
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(other_commands, systemd_gets_no_sign_of_life_while_renewal_fails) {
  const systemd manager(folder.file("notify"));
  around.environment.push_back("NOTIFY_SOCKET=" + manager.path());
  around.environment.push_back("WATCHDOG_USEC=10000000");
  program p(command({"run", "l", "--ttl", "3s", "--on-lost=kill", "--json", "--", "cat"}), around);
  wait_for(p, "started");
  const write_blocker away(folder.file("locks.db"), around);
  wait_for(p, "suspect");
  std::string before;
  for (auto said = manager.hear_now(); !said.empty(); said = manager.hear_now()) before = said;
  wait_for(p, "killed");
  EXPECT_EQ(p.wait(), 79);
  // And nothing before it, unless this process was so late that the service is over already.
  EXPECT_EQ(before == "STOPPING=1" ? before : manager.hear_now(), "STOPPING=1");
}

TEST_F(other_commands, systemds_watchdog_must_be_longer_than_the_renewals) {
  const systemd manager(folder.file("notify"));
  around.environment.push_back("NOTIFY_SOCKET=" + manager.path());
  around.environment.push_back("WATCHDOG_USEC=2000000");
  EXPECT_EQ(tool({"run", "l", "--", "true"}).code, 78);
  EXPECT_EQ(tool({"run", "l", "--ttl", "3s", "--", "true"}).code, 0);
}

TEST_F(other_commands, fail_with_69_when_the_store_does_not_answer) {
  tool({"run", "l", "--", "true"});
  const write_blocker away(folder.file("locks.db"), around);
  const auto r = tool({"run", "l", "-n", "--store", store + "?busy_timeout=50ms", "--", "true"});
  EXPECT_EQ(r.code, 69) << r.err;
}

TEST_F(other_commands, fail_with_77_when_the_store_may_not_be_written) {
  tool({"run", "l", "--", "true"});
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    std::filesystem::permissions(file.path(), std::filesystem::perms(0444));
  around.unprivileged = true;
  const auto r = tool({"run", "l", "--", "true"});
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  EXPECT_EQ(r.code, 77) << r.err;
}

}  // namespace tool_test
