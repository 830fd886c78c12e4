#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <holdfast/session.hpp>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"
#include "paths.hpp"
#include "tool/fixture.hpp"
#include "tool/serve/http_server.hpp"

// holdfast serve, as a browser sees it.
namespace tool_test {

namespace {

using nlohmann::json;

/// A parsed answer.
struct said {
  int status = 0;
  std::string head;
  std::string body;
  json parsed() const { return json::parse(body); }
};

class serve : public holdfast_tool {
 protected:
  /// The server, and its output when it listened.
  class page {
   public:
    page(const serve& test, words options)
        : process(command(with_serve(std::move(options))), test.around),
          facts(json::parse(process.out.line())) {}

    int port() const {
      const std::string url = facts["url"];
      return std::stoi(url.substr(url.rfind(':') + 1));
    }
    said ask(const std::string& what, const std::string& headers = {},
             const std::string& body = {}) const {
      std::string all;
      // The server hangs up on a client that sends nothing for that long: this process may have
      // been suspended.
      constexpr auto patience = holdfast::tool::http_limits{}.request_patience;
      std::chrono::nanoseconds took{};
      do {
        const auto began = std::chrono::steady_clock::now();
        harness::tcp_client client(port());
        client.say(what + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
        took = std::chrono::steady_clock::now() - began;
        all = client.hear_all();
      } while (all.empty() && took >= patience && what.starts_with("GET "));
      const auto end = all.find("\r\n\r\n");
      if (end == all.npos) throw std::runtime_error("no answer to " + what + ": " + all);
      return {std::stoi(all.substr(9, 3)), all.substr(0, end), all.substr(end + 4)};
    }
    json get(const std::string& path) const { return ask("GET " + path).parsed(); }
    said unlock(const std::string& token, const json& what) const {
      return ask("POST /api/unlock", "Authorization: Bearer " + token + "\r\n", what.dump());
    }

    program process;
    json facts;

   private:
    static words with_serve(words options) {
      options.insert(options.begin(), {"serve", "--json", "--listen", ":0", "--share", "20"});
      return options;
    }
  };

  /// A browser's stream.
  class viewer {
   public:
    explicit viewer(const page& of) : client_(of.port()) {
      client_.say("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    /// Returns when the text has arrived, and goes on behind it next time.
    void hear(const std::string& text) {
      for (std::size_t from = 0;;) {
        const auto at = heard_.find(text, from);
        if (at != heard_.npos) return void(heard_.erase(0, at + text.size()));
        from = heard_.size() - std::min(heard_.size(), text.size());
        const std::string more = client_.hear_some();
        if (more.empty()) throw std::runtime_error("the stream ended: " + heard_);
        heard_ += more;
      }
    }

   private:
    harness::tcp_client client_;
    std::string heard_;
  };
};

}  // namespace

TEST_F(serve, viewers_see_acquisitions_and_releases_of_another_process) {
  page p(*this, {});
  viewer v(p);
  v.hear("event: hello\ndata: {\"schema\":1,");
  holder h(*this, {"deploy", "--reason", "<b>why</b>"});
  v.hear("{\"lock\":\"deploy\",\"kind\":\"mutex\"");
  EXPECT_EQ(p.get("/api/locks")["locks"][0]["holders"][0]["reason"], "<b>why</b>");
  EXPECT_EQ(h.let_go(), 0);
  v.hear("\"gone\":[\"deploy\"]");
  p.process.signal(SIGTERM);
  EXPECT_EQ(p.process.wait(), 0);
}

TEST_F(serve, its_locks_have_the_fields_of_list_json) {
  page p(*this, {});
  viewer v(p);
  holder h(*this, {"deploy", "--reason", "why"});
  v.hear("\"lock\":\"deploy\"");
  const auto keys = [](const json& j) {
    std::set<std::string> all;
    for (const auto& [key, value] : j.items()) all.insert(key);
    return all;
  };
  const json ours = p.get("/api/locks");
  const json theirs = json::parse(tool({"list", "--json"}).out);
  auto theirs_and_age = keys(theirs);
  theirs_and_age.insert("age_seconds");
  EXPECT_EQ(keys(ours), theirs_and_age);
  EXPECT_EQ(keys(ours["locks"][0]), keys(theirs["locks"][0]));
  EXPECT_EQ(keys(ours["locks"][0]["holders"][0]), keys(theirs["locks"][0]["holders"][0]));
  EXPECT_EQ(ours["locks"][0]["last_fence"], theirs["locks"][0]["last_fence"]);
}

TEST_F(serve, a_lock_s_page_has_the_queue_in_order_and_a_killed_holder_s_end) {
  page p(*this, {});
  holder h(*this, {"deploy", "--reason", "first"});
  std::vector<std::unique_ptr<program>> waiting;
  for (const char* reason : {"second", "third"}) {
    waiting.push_back(std::make_unique<program>(
        command({"hold", "deploy", "--json", "--fair", "--reason", reason}), around));
    harness::eventually("it waits",
                        [&] { return shown("deploy")["waiters"].size() == waiting.size(); });
  }
  const std::string path = "/api/lock?lock=deploy";
  harness::eventually("the page shows both", [&] { return p.get(path)["waiters"].size() == 2; });
  const json before = p.get(path);
  EXPECT_EQ(before["holders"][0]["reason"], "first");
  EXPECT_EQ(before["waiters"][0]["reason"], "second");
  EXPECT_EQ(before["waiters"][1]["reason"], "third");
  h.process.signal(SIGKILL);
  harness::eventually("the next one has it",
                      [&] { return p.get(path)["holders"][0]["reason"] == "second"; });
  const json after = p.get(path);
  EXPECT_EQ(after["waiters"].size(), 1u);
  EXPECT_EQ(after["changes"][0]["what"], "taken");
  EXPECT_EQ(after["changes"][0]["reason"], "second");
  EXPECT_TRUE(after["changes"][0].contains("waited_seconds"));
  EXPECT_EQ(after["changes"][1]["what"], "given_up");
  EXPECT_EQ(after["changes"][1]["reason"], "first");
  EXPECT_EQ(after["waited"]["count"], 1);
  harness::eventually("it is counted", [&] {
    const json busiest = p.get("/api/busiest")["locks"];
    return !busiest.empty() && busiest[0]["lock"] == "deploy";
  });
}

TEST_F(serve, processes_that_wait_for_each_other_are_a_ring) {
  page p(*this, {});
  const auto nested = [&](const std::string& has, const std::string& wants) {
    return std::make_unique<program>(
        command(run_sh(has, {}, "read go; exec \"" HOLDFAST_TOOL "\" run " + wants + " -- true")),
        around);
  };
  const auto one = nested("a", "b");
  const auto two = nested("b", "a");
  for (const char* name : {"a", "b"})
    harness::eventually("it is held", [&] { return !shown(name)["holders"].empty(); });
  EXPECT_TRUE(p.get("/api/graph")["rings"].empty());
  one->tell("go\n");
  two->tell("go\n");
  harness::eventually("there is a ring", [&] { return !p.get("/api/graph")["rings"].empty(); });
  const json graph = p.get("/api/graph");
  EXPECT_EQ(graph["rings"].size(), 1u);
  EXPECT_EQ(graph["rings"][0].size(), 4u) << "each holder, and its command that waits";
}

// Nothing tells the keys of a dialect from other keys.
TEST_F(serve, a_store_whose_names_cannot_be_listed_shows_the_names_that_viewers_open) {
  harness::redis_server server;
  words options;
  const words dialects{"redlock", "redisson", "setnx"};
  for (const auto& dialect : dialects) {
    options.push_back("--store");
    options.push_back(server.url("?dialect=" + dialect));
  }
  page p(*this, options);
  for (std::size_t i = 0; i < dialects.size(); ++i) {
    const std::string of_store = "store=" + std::to_string(i);
    const std::string path = "/api/lock?lock=" + dialects[i] + '&' + of_store;
    EXPECT_TRUE(p.get(path)["holders"].empty());
    auto at = around;
    at.environment[0] = "HOLDFAST_STORE=" + options[2 * i + 1];
    holder h(at, {dialects[i]});
    harness::eventually("its holder is shown", [&] { return p.get(path)["holders"].size() == 1; });
    EXPECT_EQ(p.get("/api/locks?" + of_store)["locks"].size(), 1u);
    EXPECT_EQ(h.let_go(), 0);
    harness::eventually("it is free", [&] { return p.get(path)["holders"].empty(); });
    const json health = p.get("/api/health?" + of_store);
    EXPECT_EQ(health["reachable"], true) << health;
    EXPECT_FALSE(health.contains("error")) << health;
    EXPECT_NE(health.value("note", "").find("look like any others"), std::string::npos) << health;
    EXPECT_EQ(health["errors"], 0) << health;
  }
  const std::string metrics = p.ask("GET /metrics").body;
  EXPECT_NE(metrics.find("?dialect=redlock\"} 1\n"), metrics.npos) << metrics;
  server.kill();
  harness::eventually("it is away", [&] { return p.get("/api/health")["reachable"] == false; });
}

TEST_F(serve, only_the_token_unlocks) {
  holder h(*this, {"deploy"});
  const json what{{"lock", "deploy"}, {"reason", "it is stuck"}};
  {
    const page read_only(*this, {});
    EXPECT_FALSE(read_only.facts.contains("token"));
    EXPECT_EQ(read_only.unlock("", what).status, 403);
  }
  page p(*this, {"--allow-unlock"});
  const std::string token = p.facts["token"];
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(p.unlock("", what).status, 401);
  EXPECT_EQ(p.unlock(token.substr(1), what).status, 401);
  EXPECT_EQ(p.unlock(std::string(32, '0'), what).status, 401);
  EXPECT_EQ(p.ask("POST /api/unlock?token=" + token, {}, what.dump()).status, 401);
  EXPECT_EQ(p.unlock(token, json{{"lock", 1}}).status, 400);
  EXPECT_EQ(p.unlock(token, json{{"lock", "deploy"}, {"owner", "00000000"}}).status, 409);
  EXPECT_EQ(shown("deploy")["holders"].size(), 1u);
  const said done = p.unlock(token, what);
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(done.parsed()["removed"], 1);
  EXPECT_TRUE(shown("deploy")["holders"].empty());
  const std::string line = p.process.err.line();
  EXPECT_NE(line.find("taken away from 1 holder (it is stuck); a viewer asked for it; it was held "
                      "by "),
            line.npos)
      << line;
  EXPECT_EQ(h.let_go(), 79);
}

TEST_F(serve, a_token_of_a_file_is_the_owner_s_alone_and_is_not_printed) {
  const std::string path = folder.file("token");
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
  };
  const auto refused = [&] {
    return tool({"serve", "--listen", ":0", "--allow-unlock", "--token-file", path}).code;
  };
  EXPECT_EQ(refused(), 78);
  write("0123456789abcdef\n", 0644);
  EXPECT_EQ(refused(), 78);
  write("0123456789\n", 0600);
  EXPECT_EQ(refused(), 78);
  write("0123456789abcdef\r\n", 0600);
  EXPECT_EQ(refused(), 78) << "no browser could send it";
  write("0123456789abcdef\n", 0600);
  const std::string link = folder.file("link"), pipe = folder.file("pipe");
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& other : {link, pipe, folder.path().string(), folder.file("nothing")}) {
    const auto r = tool({"serve", "--listen", ":0", "--allow-unlock", "--token-file", other});
    EXPECT_EQ(r.code, 78) << other;
    EXPECT_NE(r.err.find(other), r.err.npos) << r.err;
  }
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    EXPECT_EQ(refused(), 78) << "another user knows it";
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  const page p(*this, {"--allow-unlock", "--token-file", path});
  EXPECT_FALSE(p.facts.contains("token"));
  EXPECT_EQ(p.unlock("0123456789abcdef", json{{"lock", "free"}}).status, 200);
  EXPECT_EQ(tool({"serve", "--token-file", path}).code, 64);
}

TEST_F(serve, a_page_of_another_site_changes_nothing_over_plain_http_either) {
  const holder h(*this, {"deploy"});
  page p(*this, {"--allow-unlock"});
  const std::string token = p.facts["token"];
  const auto unlock = [&](const std::string& headers) {
    return p.ask("POST /api/unlock", "Authorization: Bearer " + token + "\r\n" + headers,
                 json{{"lock", "deploy"}}.dump());
  };
  for (const char* origin : {"http://evil.example", "null", "http://localhost:1"})
    EXPECT_EQ(unlock(std::string("Origin: ") + origin + "\r\n").status, 403) << origin;
  EXPECT_EQ(shown("deploy")["holders"].size(), 1u);
  EXPECT_EQ(unlock("Origin: http://localhost\r\n").status, 200);
  EXPECT_TRUE(shown("deploy")["holders"].empty());
}

TEST_F(serve, other_names_and_other_sites_get_nothing) {
  const page p(*this, {});
  for (const char* path : {"/", "/main.js", "/api/locks", "/api/events", "/nothing"}) {
    harness::tcp_client client(p.port());
    client.say(std::string("GET ") + path + " HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    EXPECT_EQ(client.hear_all().find("421"), 9u) << path;
  }
  for (const char* site : {"cross-site", "same-site"})
    for (const char* path : {"GET /api/locks", "GET /metrics"})
      EXPECT_EQ(p.ask(path, std::string("Sec-Fetch-Site: ") + site + "\r\n").status, 403);
  EXPECT_EQ(p.ask("GET /api/locks", "Sec-Fetch-Site: same-origin\r\n").status, 200);
  EXPECT_EQ(p.ask("GET /nothing").status, 404);
  EXPECT_EQ(p.ask("GET /../main.js").status, 404);
  EXPECT_EQ(p.ask("GET /api/locks?store=1").status, 404);
  EXPECT_EQ(p.ask("GET /api/lock").status, 400);
  for (const char* method : {"POST", "OPTIONS", "PUT"}) {
    const said no = p.ask(method + std::string(" /api/locks"));
    EXPECT_EQ(no.status, 405);
    EXPECT_NE(no.head.find("Allow: GET, HEAD\r\n"), no.head.npos) << no.head;
  }
  EXPECT_NE(p.ask("GET /api/unlock").head.find("Allow: POST\r\n"), std::string::npos);
  const said start = p.ask("GET /");
  EXPECT_NE(start.head.find("text/html"), start.head.npos);
  EXPECT_NE(start.head.find("require-trusted-types-for 'script'"), start.head.npos);
  EXPECT_EQ(start.head.find("Access-Control"), start.head.npos);
}

// Health checks of load balancers send HEAD.
TEST_F(serve, head_is_get_without_the_body) {
  const page p(*this, {});
  for (const char* path : {"/", "/main.js", "/api/health"}) {
    const said head = p.ask(std::string("HEAD ") + path);
    EXPECT_EQ(head.status, 200) << path;
    EXPECT_EQ(head.body, "") << path;
  }
  const said all = p.ask("GET /main.js");
  EXPECT_EQ(p.ask("HEAD /main.js").head, all.head);
  EXPECT_NE(all.head.find("Content-Length: " + std::to_string(all.body.size())), all.head.npos);
  EXPECT_EQ(p.ask("HEAD /nothing").status, 404);
  const said stream = p.ask("HEAD /api/events");
  EXPECT_EQ(stream.status, 200) << "and it ends";
  EXPECT_EQ(stream.head.find("Content-Length"), stream.head.npos) << stream.head;
}

TEST_F(serve, a_request_by_http_1_1_needs_a_host) {
  const page p(*this, {});
  const auto status = [&](const std::string& version) {
    harness::tcp_client client(p.port());
    client.say("GET /api/health HTTP/" + version + "\r\n\r\n");
    return client.hear_all().substr(9, 3);
  };
  EXPECT_EQ(status("1.1"), "400");
  EXPECT_EQ(status("1.0"), "200");
}

TEST_F(serve, names_of_the_option_host_are_its_own) {
  const page p(*this, {"--host", "locks.example.com", "--host", "other.example.com"});
  const auto status = [&](const std::string& host) {
    harness::tcp_client client(p.port());
    client.say("GET /api/health HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.hear_all().substr(9, 3);
  };
  EXPECT_EQ(status("locks.example.com"), "200");
  EXPECT_EQ(status("other.example.com:443"), "200");
  EXPECT_EQ(status("example.com"), "421");
  for (const char* name : {"", "https://locks.example.com", "locks.example.com:443"})
    EXPECT_EQ(tool({"serve", "--host", name}).code, 64) << name;
}

TEST_F(serve, a_store_that_is_given_twice_is_refused) {
  const auto r = tool({"serve", "--listen", ":0", "--store", store, "--store", store});
  EXPECT_EQ(r.code, 64);
  EXPECT_NE(r.err.find("is given twice"), r.err.npos) << r.err;
}

TEST_F(serve, two_hundred_viewers_share_one_scan) {
  page p(*this, {});
  std::vector<std::unique_ptr<viewer>> all;
  for (int i = 0; i < 200; ++i) all.push_back(std::make_unique<viewer>(p));
  for (const auto& v : all) v->hear("event: hello");
  holder h(*this, {"deploy"});
  for (const auto& v : all) v->hear("\"lock\":\"deploy\"");
  const json health = p.get("/api/health");
  EXPECT_LE(health["used_share"], health["allowed_share"].get<double>() * 1.5 + 0.1);
}

TEST_F(serve, several_stores_of_which_one_goes_away_and_comes_back) {
  harness::redis_server redis;
  page p(*this, {"--store", store, "--store", redis.tcp_url()});
  viewer v(p);
  v.hear("event: hello");
  holder here(*this, {"here"});
  v.hear("\"lock\":\"here\"");
  holder there(*this, {"there", "--store", redis.tcp_url()});
  v.hear("\"lock\":\"there\"");
  EXPECT_EQ(p.get("/api/locks?store=0")["locks"][0]["lock"], "here");
  EXPECT_EQ(p.get("/api/locks?store=1")["locks"][0]["lock"], "there");
  redis.kill();
  v.hear("\"reachable\":false");
  const json away = p.get("/api/health?store=1");
  EXPECT_GT(away["errors"], 0);
  EXPECT_FALSE(away["error"].get<std::string>().empty());
  for (const char* path :
       {"/api/locks?", "/api/lock?lock=there&", "/api/graph?", "/api/busiest?"}) {
    const std::string of_away = std::string("GET ") + path + "store=1";
    const said old = p.ask(of_away);
    EXPECT_EQ(old.status, 200) << path;
    EXPECT_GT(old.parsed()["age_seconds"], 0) << path;
    const said fresh = p.ask(of_away + "&max_age=0");
    EXPECT_EQ(fresh.status, 503) << path;
    EXPECT_NE(fresh.body.find("the store is away"), fresh.body.npos) << fresh.body;
    EXPECT_EQ(p.ask(of_away + "&max_age=soon").status, 400) << path;
  }
  EXPECT_EQ(p.ask("GET /api/locks?store=0&max_age=60").status, 200);
  EXPECT_EQ(p.get("/api/locks?store=0")["locks"].size(), 1u) << "the other store goes on";
  redis.start();
  harness::eventually("it is back",
                      [&] { return p.get("/api/health?store=1")["reachable"] == true; });
}

TEST_F(serve, a_store_that_is_away_at_first_is_shown_as_away) {
  harness::redis_server redis;
  const std::string url = redis.tcp_url();
  redis.kill();
  page p(*this, {"--store", url});
  harness::eventually("it is away", [&] {
    const json health = p.get("/api/health");
    return health["reachable"] == false && health["errors"] > 0;
  });
  EXPECT_EQ(p.ask("GET /api/locks").status, 503)
      << "nothing is known, which is not that nobody holds anything";
  EXPECT_EQ(p.ask("GET /metrics").status, 200) << "that it is away is a state";
  redis.start();
  harness::eventually("it has come", [&] { return p.get("/api/health")["reachable"] == true; });
}

TEST_F(serve, a_limit_s_page_shows_its_emptiest_buckets_as_show_does) {
  for (const char* key : {"acme", "other", "acme"})
    ASSERT_EQ(tool({"limit", "api", "--rate", "5/1d", "--key", key}).code, 0);
  const json theirs = shown("api")["buckets"];
  ASSERT_EQ(theirs.size(), 2u);
  EXPECT_EQ(theirs[0]["key"], json({"acme"}));
  EXPECT_EQ(theirs[0]["remaining"], 3);
  EXPECT_EQ(theirs[0]["limit"], 5);
  EXPECT_EQ(theirs[0]["tokens"], 1);
  EXPECT_EQ(theirs[0]["per_seconds"], 86400.0 / 5);
  const std::string text = tool({"show", "api"}).out;
  EXPECT_NE(text.find("RULE  KEY    LEFT  OF  COMES BACK"), text.npos) << text;
  page p(*this, {});
  harness::eventually("the page has them", [&] {
    const json ours = p.get("/api/lock?lock=api");
    return ours.contains("buckets") && ours["buckets"].size() == 2;
  });
  const json ours = p.get("/api/lock?lock=api")["buckets"];
  EXPECT_EQ(ours[0]["key"], json({"acme"}));
  EXPECT_EQ(ours[0]["remaining"], 3);
}

TEST_F(serve, metrics_are_those_of_holdfast_metrics) {
  page p(*this, {});
  holder h(*this, {"deploy"});
  harness::eventually("it is seen", [&] { return p.get("/api/locks")["locks"].size() == 1; });
  harness::eventually("a command about one name is measured",
                      [&] { return p.get("/api/health")["round_trip_seconds"] > 0; });
  const said metrics = p.ask("GET /metrics");
  EXPECT_NE(metrics.head.find("Content-Type: application/openmetrics-text"), std::string::npos);
  // All but the values: the families with their types, units and helps, and each series.
  const auto series = [](const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      all.push_back(line.starts_with('#') ? line : line.substr(0, line.rfind(' ')));
    return all;
  };
  const std::vector<std::string> ours = series(metrics.body);
  EXPECT_EQ(ours, series(tool({"metrics", "--format", "openmetrics"}).out));
  EXPECT_EQ(ours.back(), "# EOF");
  EXPECT_NE(metrics.body.find("holdfast_store_held{"), std::string::npos) << metrics.body;
}

TEST_F(serve, metrics_have_the_label_of_the_programs_and_each_series_once) {
  const harness::redis_server redis;
  const std::string a = redis.tcp_url("?prefix=a:"), b = redis.tcp_url("?prefix=b:");
  page p(*this, {"--store", a, "--store", b});
  const std::string text = p.ask("GET /metrics").body;
  const std::string up = "\nholdfast_store_up{store=\"";
  for (const auto& url : {a, b})
    EXPECT_NE(text.find(up + holdfast::open(url).url() + "\"} 1"), text.npos) << text;
}

TEST_F(serve, metrics_have_each_series_once_also_where_a_store_is_given_by_two_urls) {
  const harness::redis_server redis;
  const std::string a = redis.tcp_url("?prefix=a:"), label = holdfast::open(a).url();
  page p(*this, {"--store", a, "--store", label});
  const std::string text = p.ask("GET /metrics").body;
  const std::string up = "\nholdfast_store_up{store=\"" + label;
  const auto first = text.find(up + "\"} 1");
  ASSERT_NE(first, text.npos) << text;
  EXPECT_EQ(text.find(up + "\"} 1", first + 1), text.npos) << text;
  EXPECT_NE(text.find(up + "#2\"} 1"), text.npos) << text;
}

TEST_F(serve, a_database_that_is_not_there_yet_is_away_until_a_program_makes_it) {
  const std::string later = "sqlite:" + folder.file("later.db");
  page p(*this, {"--store", later});
  harness::eventually("it is known to be away", [&] {
    return p.ask("GET /api/health").body.find("there is no database at") != std::string::npos;
  });
  holder h(*this, {"deploy", "--store", later});
  harness::eventually("it is seen", [&] {
    const json locks = p.get("/api/locks");
    return locks.contains("locks") && locks["locks"].size() == 1;
  });
}

TEST_F(serve, bad_options_end_with_one_line) {
  EXPECT_EQ(tool({"serve", "--listen", "nowhere"}).code, 64);
  EXPECT_EQ(tool({"serve", "--listen", "no.such.host.invalid:0"}).code, 78);
  EXPECT_EQ(tool({"serve", "--share", "0"}).code, 64);
  EXPECT_EQ(tool({"serve", "--share", "51"}).code, 64);
  EXPECT_EQ(tool({"serve", "--store", ""}).code, 64);
  EXPECT_EQ(tool({"serve", "--store", "memory:"}).code, 78);
}

}  // namespace tool_test
