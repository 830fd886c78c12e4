#include <gtest/gtest.h>

#include <fstream>

#include "harness/eventually.hpp"
#include "harness/tcp.hpp"
#include "paths.hpp"
#include "tool/fixture.hpp"

// holdfast-faultproxy as a user starts it. tests/faultproxy covers its effects on connections.
namespace tool_test {

namespace {

words proxy(const words& arguments) {
  words all{HOLDFAST_FAULTPROXY};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

int port_in(const std::string& line) {
  const auto colon = line.find(':');
  EXPECT_TRUE(line.starts_with("listening on 127.0.0.1:")) << line;
  return std::stoi(line.substr(colon + 1));
}

/// Sends back everything it gets.
class proxy_program : public testing::Test {
 protected:
  harness::fake_server server_{
      [](std::string& heard) { return std::optional(std::exchange(heard, {})); }};
  std::string to_ = "127.0.0.1:" + std::to_string(server_.port());
};

TEST_F(proxy_program, forwards_and_obeys_lines_on_stdin_until_it_is_closed) {
  program p(proxy({"--to", to_}), {});
  const int port = port_in(p.out.line());
  harness::tcp_client c(port);
  c.say("hello");
  EXPECT_EQ(c.hear(5), "hello");
  p.tell("status\ncut\nbad command\n");
  EXPECT_EQ(p.out.line(), "accepted=1 open=1 cut=0 up=5 down=5");
  EXPECT_EQ(p.out.line(), "ok");
  EXPECT_EQ(c.hear_all(), "");
  EXPECT_EQ(p.out.line().rfind("error: 'bad' is not a command", 0), 0U);
  p.close_stdin();
  EXPECT_EQ(p.wait(), 0);
}

TEST_F(proxy_program, begins_with_the_commands_it_was_given) {
  program p(proxy({"--to=" + to_, "--listen=0", "refuse"}), {});
  harness::tcp_client c(port_in(p.out.line()));
  EXPECT_EQ(c.hear_all(), "");
}

TEST_F(proxy_program, goes_on_when_stdin_is_dev_null_and_ends_by_a_signal) {
  surroundings as_cron_gives_it;
  as_cron_gives_it.null_stdin = true;
  program p(proxy({"--to", to_}), as_cron_gives_it);
  const int port = port_in(p.out.line());
  for (int i = 0; i < 3; ++i) {
    harness::tcp_client c(port);
    c.say("hello");
    EXPECT_EQ(c.hear(5), "hello");
  }
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 128 + SIGTERM);
}

TEST_F(proxy_program, reports_errors_and_exits_with_the_documented_codes) {
  const auto code = [&](const words& w, const std::string& hint) {
    const auto o = run_to_end(proxy(w), {});
    EXPECT_NE(o.err.find(hint), std::string::npos) << o.err;
    EXPECT_EQ(o.out, "");
    return o.code;
  };
  EXPECT_EQ(code({}, "--to HOST:PORT is missing"), 64);
  EXPECT_EQ(code({"--to"}, "--to needs an address"), 64);
  EXPECT_EQ(code({"--to", "nowhere"}, "not a port"), 64);
  EXPECT_EQ(code({"--too", "h:1"}, "--too"), 64);
  EXPECT_EQ(code({"--to", to_, "slow"}, "not a command"), 64);
  EXPECT_EQ(code({"--to", "does-not-exist.invalid:1"}, "does-not-exist.invalid"), 69);
  EXPECT_EQ(code({"--to", to_, "--listen", to_}, "cannot listen on " + to_), 69);
}

TEST_F(proxy_program, its_help_lists_the_commands_and_the_exit_codes) {
  const auto o = run_to_end(proxy({"--help"}), {});
  EXPECT_EQ(o.code, 0);
  for (const char* word : {"--to", "--listen", "drop-reply", "swallow", "64", "69"}) {
    EXPECT_NE(o.out.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(run_to_end(proxy({"--version"}), {}).out.find("holdfast-faultproxy "), 0U);
  const auto page = run_to_end(proxy({"--manual"}), {});
  EXPECT_EQ(page.out.find("holdfast-faultproxy(1) "), 0U);
  EXPECT_NE(page.out.find("drop-reply"), std::string::npos);
}

}  // namespace

}  // namespace tool_test
