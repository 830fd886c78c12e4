#include <random>
#include <string>

#include "harness/eventually.hpp"
#include "harness/least_rights.hpp"
#include "harness/redis_rights.hpp"
#include "harness/shared_servers.hpp"
#include "harness/tcp.hpp"
#include "tool/fixture.hpp"

// The programs that read a whole store, on each kind of store, as the user with the rights that the
// store's page lists. Each test has servers of its own, so it runs at night.
namespace tool_test {

namespace {

using nlohmann::json;

struct kind_of_store {
  const char* name;
  bool lists_waiters = true;
  const char* mode = "";       ///< of the URL
  bool stores_reasons = true;  ///< for other sessions; then it can list the names, too
};

void PrintTo(const kind_of_store& k, std::ostream* out) { *out << k.name; }

/// A store that nobody else uses.
std::string store_on(const std::string& servers, const std::string& kind) {
  const std::string fresh = harness::conformance_prefix + std::to_string(std::random_device()());
  if (kind.starts_with("redis")) return harness::as_documented_user(servers) + "?prefix=" + fresh;
  if (kind == "memcached") return servers + "?prefix=" + fresh;
  return harness::store_of_least_rights(servers, fresh);
}

class every_store : public holdfast_tool, public testing::WithParamInterface<kind_of_store> {
 protected:
  every_store() : servers_(harness::start_servers(GetParam().name)) {
    store = store_on(servers_.url, GetParam().name) + GetParam().mode;
    around.environment[0] = "HOLDFAST_STORE=" + store;
    EXPECT_EQ(tool({"run", "made", "--", "true"}).code, 0);
  }

  static json get(int port, const std::string& path) {
    harness::tcp_client client(port);
    client.say("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string all = client.hear_all();
    return json::parse(all.substr(all.find("\r\n\r\n") + 4));
  }

 private:
  harness::servers servers_;
};

}  // namespace

TEST_P(every_store, doctor_finds_no_problem_and_leaves_nothing) {
  const auto said = tool({"doctor", "--json"});
  const json all = json::parse(said.out);
  EXPECT_FALSE(all["findings"].empty()) << said.err;
  for (const auto& f : all["findings"])
    EXPECT_TRUE((f["level"] != "problem" && f["level"] != "warning") || f["remedy"] != "") << f;
  // The servers of tests do not wait for the disk, and doctor reports that.
  for (const auto& f : all["findings"])
    EXPECT_TRUE(f["level"] != "problem" || f["topic"] == "persistence") << f;
  for (const auto& f : all["findings"])
    EXPECT_TRUE(f["level"] != "warning" || f["topic"] != "notifications") << f;
  const auto left = tool({"list"});
  EXPECT_EQ(left.code, GetParam().stores_reasons ? 0 : 78) << left.err;
  EXPECT_EQ(left.out.find("holdfast-doctor"), std::string::npos);
}

TEST_P(every_store, serve_shows_holders_and_waiters) {
  program page(command({"serve", "--json", "--listen", ":0", "--share", "20"}), around);
  const std::string url = json::parse(page.out.line())["url"];
  const int port = std::stoi(url.substr(url.rfind(':') + 1));
  holder h(*this, {"deploy", "--reason", "first"});
  const program waiter(command({"run", "deploy", "--reason", "second", "--", "true"}), around);
  const std::string path = "/api/lock?lock=deploy";
  harness::eventually("the page shows its holder",
                      [&] { return get(port, path)["holders"].size() == 1; });
  if (GetParam().stores_reasons) EXPECT_EQ(get(port, path)["holders"][0]["reason"], "first");
  if (GetParam().lists_waiters) {
    harness::eventually("the page shows the waiters",
                        [&] { return get(port, path)["waiters"].size() == 1; });
    if (GetParam().stores_reasons) EXPECT_EQ(get(port, path)["waiters"][0]["reason"], "second");
  }
  EXPECT_EQ(get(port, "/api/health")["reachable"], true);
  EXPECT_EQ(get(port, "/api/health").contains("note"), !GetParam().stores_reasons);
  EXPECT_EQ(h.let_go(), 0);
  harness::eventually("nobody holds it", [&] { return get(port, path)["holders"].empty(); });
}

TEST_P(every_store, commands_that_read_show_two_programs_that_wait_for_each_other) {
  const bool lists = GetParam().stores_reasons;
  // Some stores end a session, and so the lock, long before this lease: then TERM comes in time.
  const auto nested = [&](const std::string& has, const std::string& wants) {
    return command(run_sh(has, {"--reason", "in " + has, "--ttl", "10m", "--kill-after", "3m"},
                          "echo in; read x; exec " HOLDFAST_TOOL " run " + wants + " -- true"));
  };
  program left(nested("a", "b"), around);
  program right(nested("b", "a"), around);
  left.out.until("in\n");
  right.out.until("in\n");
  EXPECT_EQ(tool({"ping", "-c", "1"}).code, 0);
  EXPECT_EQ(tool({"watch", "a", "--until", "held"}).code, 0);
  const auto metrics = tool({"metrics"}).out;
  EXPECT_EQ(metrics.find("kind=\"mutex\",group=\"a\"} 1\n") != metrics.npos, lists) << metrics;
  const auto top = tool({"top", "--once"});
  EXPECT_EQ(top.code, lists ? 0 : 78) << top.err;
  EXPECT_EQ(top.out.find("in a") != top.out.npos, lists) << top.out;
  // Half a second may be over on a loaded machine.
  const words complete{"env", "--block-signal=ALRM", HOLDFAST_TOOL, "completion", "names", "a"};
  EXPECT_EQ(run_to_end(complete, around).out, lists ? "a\n" : "");

  left.tell("\n");
  right.tell("\n");
  if (!lists || !GetParam().lists_waiters) {
    EXPECT_EQ(tool({"graph"}).code, lists ? 0 : 78);
    return;
  }
  wait_for_waiter("a");
  wait_for_waiter("b");
  EXPECT_EQ(json::parse(tool({"graph", "--json"}).out)["rings"].size(), 1U);
  EXPECT_NE(tool({"graph", "--dot"}).out.find("color=red"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(at_night, every_store,
                         testing::Values(kind_of_store{"redis"}, kind_of_store{"redis_sentinel"},
                                         kind_of_store{"redis_cluster"},
                                         kind_of_store{"memcached", false},
                                         kind_of_store{"postgres"},
                                         kind_of_store{"postgres_pooled"},
                                         kind_of_store{"postgres", true, "&mode=session", false},
                                         kind_of_store{"mariadb"},
                                         kind_of_store{"mariadb", true, "?mode=session", false},
                                         kind_of_store{"zookeeper"}, kind_of_store{"etcd"}),
                         [](const auto& one) {
                           const std::string name = one.param.name;
                           return *one.param.mode == 0 ? name : name + "_session";
                         });

}  // namespace tool_test
