#include <filesystem>
#include <fstream>
#include <holdfast/metrics.hpp>
#include <holdfast/session.hpp>
#include <regex>

#include "harness/redis_rights.hpp"
#include "harness/redis_server.hpp"
#include "tool/fixture.hpp"
#include "tool/store_url.hpp"

// How a command opens its store: what it waits for, and its messages when it cannot.
namespace tool_test {

namespace {

using namespace std::chrono_literals;

class opening_a_store : public holdfast_tool {
 protected:
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  std::string refusal(const std::string& url, int code = 64) const {
    const auto r = tool({"list", "--store", url});
    EXPECT_EQ(r.code, code) << r.err;
    return r.err;
  }
};

constexpr const char* waits = "waiting for the store for up to";

}  // namespace

TEST_F(opening_a_store, waits_for_a_server_that_starts_later_and_reports_that) {
  harness::redis_server server;
  const std::vector<words> commands{
      {"run", "l", "-w", "1m", "--", "true"},
      {"run", "l", "--", "true"},
      {"limit", "rate:l", "--rate", "1/s", "-w", "1m"},
      {"latch", "latch:l", "1", "--down", "1"},
  };
  for (words one : commands) {
    server.kill();
    one.insert(one.begin() + 2, {"--store", server.url()});
    program p(command(one), around);
    p.err.until(waits);
    server.start();
    EXPECT_EQ(p.wait(), 0) << one.front();
  }
}

TEST_F(opening_a_store, gives_up_a_server_that_does_not_start_in_time) {
  const auto url = "redis://127.0.0.1:" + std::to_string(harness::free_port());
  const auto r = tool({"run", "l", "-w", "200ms", "--store", url, "--", "true"});
  EXPECT_EQ(r.code, 69) << r.err;
  EXPECT_TRUE(has(r.err, waits)) << r.err;
  EXPECT_EQ(r.err.find(waits), r.err.rfind(waits)) << "said once: " << r.err;
}

TEST_F(opening_a_store, that_is_away_reports_it_under_its_later_name) {
  const auto url = "redis://127.0.0.1:" + std::to_string(harness::free_port());
  const auto counted = std::make_shared<holdfast::metrics>();
  try {
    (void)holdfast::open(url + "?prefix=a:", {.store_timeout = 500ms, .observer = counted});
    FAIL() << "it opens";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.store(), url + "/0?prefix=a:");
    EXPECT_EQ(std::string_view(e.what()).find("/0"), std::string_view::npos) << "once is enough";
  }
  try {
    (void)holdfast::open(url + "?dialect=setnx", {.store_timeout = 0ms});
    FAIL() << "it opens";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.store(), url + "/0?dialect=setnx");
  }
  const std::string warned = "{store=\"" + url + "/0?prefix=a:\",event=\"warning\"} 1\n";
  EXPECT_TRUE(has(counted->text(), warned)) << counted->text();
}

TEST_F(opening_a_store, is_one_try_for_a_command_that_does_not_wait) {
  const auto url = "redis://127.0.0.1:" + std::to_string(harness::free_port());
  for (const words& one : {words{"run", "l", "-n", "--store", url, "--", "true"},
                           words{"show", "l", "--store", url}}) {
    const auto r = tool(one);
    EXPECT_EQ(r.code, 69) << r.err;
    EXPECT_FALSE(has(r.err, waits)) << r.err;
  }
}

TEST_F(opening_a_store, an_unknown_one_is_answered_with_the_known_ones) {
  const auto said = refusal("mongodb://h");
  for (const char* scheme : {"sqlite", "redis", "postgres", "etcd"}) {
    EXPECT_TRUE(has(said, scheme)) << said;
  }
}

TEST_F(opening_a_store, an_option_that_it_does_not_have_is_answered_with_its_options) {
  const auto said = refusal("sqlite:" + folder.file("x") + "?readonly=1");
  EXPECT_TRUE(has(said, "sqlite: has no option 'readonly'; its options are ")) << said;
  for (const char* option : {"synchronous", "busy_timeout", "access"})
    EXPECT_TRUE(has(said, option)) << said;
}

TEST_F(opening_a_store, a_server_of_another_kind_that_waits_for_more_is_asked_about) {
  const harness::redis_server server;
  const auto said = refusal(
      "postgres://127.0.0.1:" + std::to_string(server.port()) + "/db?connect_timeout=1s", 69);
  EXPECT_TRUE(has(said, "is a PostgreSQL server running there")) << said;
}

TEST_F(opening_a_store, a_path_is_answered_by_the_url_of_a_file) {
  for (const char* path : {"/var/lib/locks.db", "locks.db", "./locks"}) {
    EXPECT_TRUE(has(refusal(path), "for a file write sqlite: before its path")) << path;
  }
}

TEST_F(opening_a_store, a_missing_database_is_not_created_by_a_command_that_reads) {
  const std::string path = folder.file("mispelt one.db"), url_file = folder.file("url");
  std::ofstream(url_file) << "sqlite:" << path << '\n';
  for (const std::string& url : {"sqlite:" + folder.file("mispelt%20one.db"),
                                 "sqlite://" + path + "?synchronous=off", "file:" + url_file}) {
    for (const words& one : {words{"list"},
                             {"show", "l"},
                             {"try", "l"},
                             {"top", "--once"},
                             {"top", "--json"},
                             {"watch", "l"},
                             {"graph"},
                             {"ping", "-c", "1"},
                             {"doctor"},
                             {"metrics"},
                             {"force-unlock", "l", "--yes"}}) {
      words all = one;
      all.insert(all.end(), {"--store", url});
      const auto r = tool(all);
      EXPECT_EQ(r.code, 69) << one.front() << r.out << r.err;
      EXPECT_TRUE(has(r.out + r.err, "there is no database at " + path)) << r.out << r.err;
      EXPECT_FALSE(has(r.out, "firewall")) << "that is for servers: " << r.out;
      EXPECT_FALSE(std::filesystem::exists(path)) << one.front();
    }
  }
  EXPECT_EQ(tool({"run", "l", "--store", "sqlite:" + path, "--", "true"}).code, 0);
  EXPECT_EQ(tool({"list", "--store", "sqlite:" + path}).code, 0);
}

TEST_F(opening_a_store, a_missing_database_named_by_the_environment_gets_the_same_error) {
  std::filesystem::remove(folder.file("locks.db"));
  const auto r = tool({"list"});
  EXPECT_EQ(r.code, 69);
  EXPECT_TRUE(has(r.err, "there is no database at")) << r.err;
  EXPECT_FALSE(std::filesystem::exists(folder.file("locks.db")));
}

// People compare the output of `show` on two hosts to find out whether they use one store. Here a
// link names the present release, and the data that all releases share is beside them.
TEST_F(opening_a_store, a_database_behind_a_link_has_the_url_of_the_file_that_is_opened) {
  std::filesystem::create_directories(folder.file("releases/42"));
  std::filesystem::create_directory_symlink("releases/42", folder.file("current"));
  const std::string url = "sqlite:" + folder.file("current/../shared.db");
  const auto session = holdfast::open(url);
  ASSERT_TRUE(std::filesystem::exists(folder.file("releases/shared.db")));
  const std::string own = std::filesystem::canonical(folder.path()).string();
  EXPECT_EQ(session.url(), "sqlite:" + own + "/releases/shared.db");
  EXPECT_EQ(holdfast::tool::url_for_others(url), session.url()) << "what a command inherits";
}

TEST_F(opening_a_store, a_database_has_one_url_under_all_its_paths) {
  std::filesystem::create_directory_symlink(folder.path(), folder.file("link"));
  std::ofstream(folder.file("url")) << "SQLITE:" << folder.file("link/locks.db") << '\n';
  const std::string own = std::filesystem::canonical(folder.path()).string();
  const std::string name = "sqlite:" + own + "/locks.db";
  for (const std::string url :
       {"sqlite:locks.db", "sqlite:./locks.db", "sqlite:link/locks.db", "file:url", "file:./url"}) {
    surroundings there = around;
    there.folder = own;
    const auto r = run_to_end(command({"show", "l", "--store", url}), there);
    EXPECT_TRUE(has(r.out, ' ' + name + '\n')) << url << r.out << r.err;
  }
  for (const std::string& url :
       {"sqlite:" + folder.file("link/./locks.db"), "sqlite://" + folder.file("locks.db"),
        "file:" + folder.file("url")}) {
    EXPECT_EQ(nlohmann::json::parse(tool({"show", "l", "--json", "--store", url}).out)["store"],
              name)
        << url;
    EXPECT_EQ(holdfast::open(url).url(), name);
    EXPECT_TRUE(has(tool({"metrics", "--store", url}).out, '"' + name + "\"} 1")) << url;
  }
}

TEST_F(opening_a_store, a_host_and_its_port_alone_are_answered_by_a_whole_url) {
  EXPECT_TRUE(has(refusal("localhost:6379"), "as in redis://host:6379"));
  EXPECT_TRUE(has(refusal("cache.internal:6379/0"), "as in redis://host:6379"));
}

TEST_F(opening_a_store, a_file_that_may_not_be_read_is_not_permitted) {
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const auto file = folder.file("url");
  std::ofstream(file) << store << '\n';
  std::filesystem::permissions(file, std::filesystem::perms::none);
  around.unprivileged = true;
  EXPECT_TRUE(has(refusal("file:" + file, 77), "cannot read the URL from"));
}

TEST_F(opening_a_store, with_the_right_to_read_only_lets_list_show_and_try_work) {
  namespace fs = std::filesystem;
  const holder h(*this, {"l"});
  for (const auto& one : fs::recursive_directory_iterator(folder.path()))
    fs::permissions(one.path(), fs::perms(one.is_directory() ? 0755 : 0644));
  fs::permissions(folder.path(), fs::perms(0755));
  around.unprivileged = true;
  EXPECT_TRUE(has(tool({"list"}).out, "l ")) << tool({"list"}).err;
  EXPECT_TRUE(has(tool({"show", "l"}).out, "holder")) << tool({"show", "l"}).out;
  EXPECT_EQ(tool({"try", "l"}).code, 75);
  const auto refused = tool({"run", "l", "--", "true"});
  EXPECT_EQ(refused.code, 77);
  EXPECT_TRUE(has(refused.err, "may not write to the folder " + folder.path().string()))
      << refused.err;
  const auto advised = tool({"doctor"});
  EXPECT_EQ(advised.code, 77);
  EXPECT_TRUE(has(advised.out, "docs/stores/sqlite.md#several-users")) << advised.out;
}

TEST_F(opening_a_store, without_the_right_to_read_names_that_right_also_to_a_command_that_reads) {
  namespace fs = std::filesystem;
  const auto file = folder.file("locks.db");
  EXPECT_EQ(tool({"run", "l", "--", "true"}).code, 0);
  fs::permissions(folder.path(), fs::perms(0755));
  around.unprivileged = true;
  const std::string to_read_only = "To read only, ", grants = "grant the right to read the file";
  fs::permissions(file, fs::perms(0600));
  EXPECT_TRUE(has(refusal("sqlite:" + file, 77), to_read_only + grants));
  fs::permissions(file, fs::perms(0644));
  const auto writes = tool({"run", "l", "--", "true"}).err;
  EXPECT_TRUE(has(writes, to_read_only + "add ?access=read")) << writes;
}

TEST_F(opening_a_store, with_access_read_allows_peek_and_refuses_changes) {
  const auto url = "sqlite:" + folder.file("locks.db");
  EXPECT_EQ(tool({"limit", "api", "--rate", "2/1h", "--store", url}).code, 0);
  EXPECT_EQ(tool({"latch", "la", "2", "--down", "1", "--store", url}).code, 0);
  const auto read = url + "?access=read";
  EXPECT_EQ(tool({"limit", "api", "--rate", "2/1h", "--peek", "--store", read}).out,
            "api: free, 1 of 2 left\n");
  EXPECT_EQ(tool({"latch", "la", "2", "--peek", "--store", read}).out, "la: closed, 1 of 2 left\n");
  for (const auto& writes : {tool({"limit", "api", "--rate", "2/1h", "--store", read}),
                             tool({"latch", "la", "2", "--down", "1", "--store", read}),
                             tool({"run", "l", "-n", "--store", read, "--", "true"})}) {
    EXPECT_EQ(writes.code, 77) << writes.err;
    EXPECT_TRUE(has(writes.err, "the store is read-only")) << writes.err;
  }
}

TEST_F(opening_a_store, names_that_this_user_may_not_read_differ_from_damaged_ones) {
  const harness::redis_server server;
  const holder h(*this, {"l", "--store", server.url()});
  EXPECT_EQ(server.ask({"ACL", "SETUSER", "app", "on", ">pw", "~none", "&*", "+@all"}), "OK");
  const auto url = harness::as_documented_user(server.url());
  const auto r = tool({"list", "--store", url});
  EXPECT_EQ(r.code, 77) << r.err;
  EXPECT_TRUE(has(r.out, "not permitted")) << r.out;
  EXPECT_TRUE(has(r.out, "NOPERM")) << r.out;
  EXPECT_EQ(tool({"metrics", "--store", url}).code, 77);
  const auto table = tool({"top", "--once", "--store", url});
  EXPECT_EQ(table.code, 77) << table.out;
  const auto waits = tool({"graph", "--store", url});
  EXPECT_EQ(waits.code, 77) << waits.out;
  EXPECT_TRUE(has(waits.err, "NOPERM")) << waits.err;
}

TEST_F(opening_a_store, a_busy_lock_is_reported_with_its_holder_in_detailed_output) {
  const holder h(*this, {"l"});
  const std::string by =
      " · held by \\S+ pid " + std::to_string(h.process.pid()) + " for ([0-9.]+(ms|s|m|h))+\n";
  for (const words& command : {words{"run", "l", "--", "true"}, {"hold", "l"}}) {
    const auto with = [&](const words& options) {
      words all = command;
      all.insert(all.begin() + 2, options.begin(), options.end());
      return tool(all);
    };
    const auto at_once = with({"-n", "-v"}), later = with({"-w", "1s", "-v"});
    EXPECT_EQ(at_once.code, 75);
    EXPECT_TRUE(std::regex_search(at_once.err, std::regex("l is busy" + by))) << at_once.err;
    EXPECT_TRUE(std::regex_search(later.err, std::regex("l was busy for 1s" + by))) << later.err;
    EXPECT_EQ(with({"-n"}).err, "");
  }
}

}  // namespace tool_test
