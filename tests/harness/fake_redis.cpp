#include "harness/fake_redis.hpp"

namespace harness {

namespace {

/// Takes one command off the front; false if it is incomplete.
bool take_command(std::string& heard, fake_redis::words& command) {
  std::size_t at = 0;
  const auto number = [&](char mark, std::size_t& value) {
    const auto end = heard.find("\r\n", at);
    if (end == heard.npos || heard[at] != mark) return false;
    value = std::stoul(heard.substr(at + 1, end - at - 1));
    at = end + 2;
    return true;
  };
  std::size_t count = 0, size = 0;
  if (!number('*', count)) return false;
  command.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (!number('$', size) || heard.size() < at + size + 2) return false;
    command.push_back(heard.substr(at, size));
    at += size + 2;
  }
  heard.erase(0, at);
  return true;
}

std::string usual(const fake_redis::words& command) {
  if (command[0] == "HELLO") return "%1\r\n" + bulk("server") + bulk("redis");
  if (command[0] == "INFO") return bulk("# Server\r\nredis_version:7.0.15\r\nrole:master\r\n");
  if (command[0] == "SUBSCRIBE") return ">3\r\n" + bulk("subscribe") + bulk(command[1]) + ":1\r\n";
  return "+OK\r\n";
}

}  // namespace

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

fake_redis::fake_redis(answers say)
    : server_([say = std::move(say)](std::string& heard) -> std::optional<std::string> {
        std::string all;
        for (words command; take_command(heard, command);) {
          const auto answer = say(command);
          if (answer == hang_up) return std::nullopt;
          all += answer.empty() ? usual(command) : answer;
        }
        return all;
      }) {}

}  // namespace harness
