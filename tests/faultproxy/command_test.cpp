#include "tool/faultproxy/command.hpp"

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace holdfast::faultproxy;

relay& somewhere() {
  static relay r({}, {.port = 1});
  return r;
}

std::string refused(const std::string& line) {
  try {
    obey(somewhere(), line);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

TEST(command, every_documented_command_is_obeyed) {
  for (const char* line : {"latency 50ms",
                           "latency 1.5s",
                           "latency 300us",
                           "latency 0ms",
                           "rate 100k",
                           "rate 0",
                           "stall",
                           "stall up",
                           "stall down",
                           "swallow",
                           "swallow up",
                           "refuse",
                           "heal",
                           "cut",
                           "reset",
                           "cut-after up 10",
                           "cut-after down 1k",
                           "drop-reply",
                           "",
                           "  heal \t",
                           "heal\r"}) {
    EXPECT_EQ(obey(somewhere(), line), "ok") << line;
  }
  EXPECT_EQ(obey(somewhere(), "status"), "accepted=0 open=0 cut=0 up=0 down=0");
}

TEST(command, the_help_names_every_command) {
  for (const char* name : {"latency", "rate", "stall", "swallow", "refuse", "heal", "cut", "reset",
                           "half-open", "half-open", "cut-after", "drop-reply", "status"}) {
    EXPECT_NE(commands().find("  " + std::string(name) + " "), std::string_view::npos) << name;
  }
}

TEST(command, bad_commands_are_refused_with_the_right_form) {
  const std::array<std::pair<const char*, const char*>, 10> cases{{{"slow", "latency"},
                                                                   {"latency", "more words"},
                                                                   {"latency 50", "50ms"},
                                                                   {"latency -1ms", "50ms"},
                                                                   {"latency nanms", "50ms"},
                                                                   {"rate fast", "100k"},
                                                                   {"rate 1e300", "100k"},
                                                                   {"stall left", "up"},
                                                                   {"cut now", "one word too many"},
                                                                   {"cut-after down", "more"}}};
  for (const auto& [line, hint] : cases) {
    EXPECT_NE(refused(line).find(hint), std::string::npos) << line << ": " << refused(line);
  }
}

TEST(command, endpoints_are_a_port_or_an_address_with_a_port) {
  EXPECT_EQ(to_string(parse_endpoint("7000")), "127.0.0.1:7000");
  EXPECT_EQ(to_string(parse_endpoint("cache.internal:6379")), "cache.internal:6379");
  EXPECT_EQ(to_string(parse_endpoint("[::1]:1")), "[::1]:1");
  for (const char* bad : {"", ":", "host", "host:", "host:99999", "::1:1", ":1", "h:1x", "-1"}) {
    EXPECT_THROW((void)parse_endpoint(bad), std::invalid_argument) << bad;
  }
}

}  // namespace
