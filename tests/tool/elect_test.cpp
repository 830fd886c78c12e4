#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"
#include "tool/fixture.hpp"

namespace tool_test {

namespace {

class elect : public holdfast_tool {};

}  // namespace

TEST_F(elect, one_runs_its_command_and_the_next_follows_with_a_greater_token) {
  program first(command({"elect", "e", "--note", "here:80", "--", "cat"}), around);
  harness::eventually("it leads", [&] { return !shown("e")["holders"].empty(); });
  const auto seen = shown("e");
  EXPECT_EQ(seen["kind"], "election");
  EXPECT_EQ(seen["holders"][0]["reason"], "here:80");
  EXPECT_EQ(tool({"elect", "e", "-w", "0", "--", "true"}).code, 75);
  program second(command({"elect", "e", "--", "sh", "-c", "echo $HOLDFAST_FENCE"}), around);
  wait_for_waiter("e");
  first.close_stdin();
  EXPECT_EQ(first.wait(), 0);
  EXPECT_GT(std::stoull(second.out.line()),
            std::stoull(seen["holders"][0]["fence"].get<std::string>()));
  EXPECT_EQ(second.wait(), 0);
}

TEST_F(elect, a_deposed_leader_ends_its_command_and_reports_the_loss) {
  program leads(command({"elect", "e", "--ttl", "3s", "--", "cat"}), around);
  harness::eventually("it leads", [&] { return !shown("e")["holders"].empty(); });
  EXPECT_EQ(tool({"force-unlock", "e", "--yes"}).code, 0);
  EXPECT_EQ(leads.wait(), 79);
}

TEST_F(elect, a_deposed_leader_may_campaign_again) {
  program leads(command({"elect", "e", "--again", "--ttl", "3s", "--", "sh", "-c",
                         "echo $HOLDFAST_FENCE; exec cat"}),
                around);
  const auto first = std::stoull(leads.out.line());
  EXPECT_EQ(tool({"force-unlock", "e", "--yes"}).code, 0);
  EXPECT_GT(std::stoull(leads.out.line()), first);
  leads.close_stdin();
  EXPECT_EQ(leads.wait(), 0);
}

TEST_F(elect, a_leader_that_was_asked_to_stop_does_not_campaign_again) {
  program leads(command({"elect", "e", "--again", "--ttl", "3s", "--json", "-c",
                         "trap 'kill -TERM $PPID; exit' TERM; echo up; read x"}),
                around);
  EXPECT_EQ(leads.out.line(), "up");
  EXPECT_EQ(tool({"force-unlock", "e", "--yes"}).code, 0);
  EXPECT_EQ(leads.wait(), 79);
}

// The store that the file names is away for a while: the URL is read again for each campaign.
TEST_F(elect, a_deposed_leader_campaigns_again_after_a_long_outage) {
  const auto name_store = [&](const std::string& url) {
    std::ofstream(folder.file("fresh")) << url << '\n';
    std::filesystem::rename(folder.file("fresh"), folder.file("url"));
  };
  const auto nobody = "redis://127.0.0.1:" + std::to_string(harness::free_port());
  name_store(store);
  surroundings by_file = around;
  by_file.environment[0] = "HOLDFAST_STORE=file:" + folder.file("url");
  const words campaign = command({"elect", "e", "--again", "--ttl", "3s", "-w", "1s", "--json",
                                  "--", "sh", "-c", "echo up; exec cat"});
  program leads(campaign, by_file);
  EXPECT_EQ(leads.out.line(), "up");
  name_store(nobody);
  EXPECT_EQ(tool({"force-unlock", "e", "--yes"}).code, 0);
  wait_for(leads, "failed");
  wait_for(leads, "campaigns_again");
  name_store(store);
  EXPECT_EQ(leads.out.line(), "up");
  wait_for(leads, "started");  // it may have failed several times

  name_store(nobody);
  EXPECT_EQ(tool({"force-unlock", "e", "--yes"}).code, 0);
  wait_for(leads, "failed");
  wait_for(leads, "campaigns_again");
  leads.signal(SIGTERM);
  EXPECT_EQ(leads.wait(), 128 + SIGTERM);

  EXPECT_EQ(run_to_end(campaign, by_file).code, 69) << "it has never led";
}

TEST_F(elect, it_names_the_leader_over_http) {
  program leads(command({"elect", "e", "--note", "here", "--http", ":0", "--json", "--", "cat"}),
                around);
  const int port = wait_for(leads, "http")["port"];
  harness::eventually("it leads", [&] { return !shown("e")["holders"].empty(); });
  const auto ask = [&](const std::string& request) {
    harness::tcp_client client(port);
    client.say(request);
    return client.hear_all();
  };
  const std::string answer = ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  const auto body = nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_EQ(body["leader"]["note"], "here");
  EXPECT_EQ(body["leader"]["term"], shown("e")["holders"][0]["fence"]);
  for (const char* ours : {"127.0.0.1", "localhost:8080", "LOCALHOST", "[::1]:80", "10.1.2.3:80"})
    EXPECT_EQ(ask(std::string("GET / HTTP/1.1\r\nhost: ") + ours + "\r\n\r\n").find("200"), 9u)
        << ours;
  EXPECT_EQ(ask("GET / HTTP/1.0\r\n\r\n").find("200"), 9u);  // without a host
  EXPECT_EQ(ask("whatever\r\n\r\n").find("400"), 9u);
  leads.close_stdin();
  EXPECT_EQ(leads.wait(), 0);
  EXPECT_EQ(tool({"elect", "e", "--http", "nowhere", "--", "true"}).code, 64);
}

TEST_F(elect, it_does_not_answer_under_a_name_that_is_not_this_machine_s) {
  program leads(command({"elect", "e", "--note", "here", "--http", ":0", "--json", "--", "cat"}),
                around);
  const int port = wait_for(leads, "http")["port"];
  for (const char* hosts :
       {"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example",
        "localhost\r\nHost: evil.example", "[evil]"}) {
    harness::tcp_client client(port);
    client.say(std::string("GET / HTTP/1.1\r\nHost: ") + hosts + "\r\n\r\n");
    const std::string answer = client.hear_all();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 421 ")) << hosts << ": " << answer;
    EXPECT_EQ(answer.find("here"), answer.npos);
  }
  harness::tcp_client hides(port);  // its name comes after the part that is read
  hides.say("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(hides.hear_all().find("200"), std::string::npos);
}

TEST_F(elect, slow_clients_keep_no_other_client_waiting) {
  program leads(command({"elect", "e", "--http", ":0", "--json", "--", "cat"}), around);
  const int port = wait_for(leads, "http")["port"];
  harness::eventually("it leads", [&] { return !shown("e")["holders"].empty(); });
  // More connections than the page allows, and none of them ever sends a request.
  std::vector<std::unique_ptr<harness::tcp_client>> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(std::make_unique<harness::tcp_client>(port));
    slow.back()->say("G");
  }
  harness::tcp_client quick(port);
  quick.say("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(quick.hear_all().starts_with("HTTP/1.1 200 OK"));
}

TEST_F(elect, it_takes_no_name_of_a_lock_and_needs_a_command) {
  holder h(*this, {"e"});
  EXPECT_EQ(tool({"elect", "e", "--", "true"}).code, 78);
  EXPECT_EQ(tool({"elect", "other"}).code, 64);
  EXPECT_EQ(h.let_go(), 0);
}

}  // namespace tool_test
