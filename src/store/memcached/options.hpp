#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store::memcached {

struct address {
  std::string host{};
  std::uint16_t port = 11211;
  auto operator<=>(const address&) const = default;
};
std::string to_string(const address& a);  ///< host:port, [host]:port

struct memcached_options {
  std::vector<address> servers{};  ///< each name is on one of them
  std::string prefix = "holdfast";
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds command_timeout{2'000};
  std::string url{};
  holdfast::clock* clock = nullptr;  ///< judges how long receive() waits; null: the machine's
};

/// Reads `//h1:11211,h2`.
result<memcached_options> parse_address(std::string_view rest);

/// The only option that is no duration.
status set_prefix(memcached_options& options, const std::string& value);

/// What no single option can tell.
status check_options(const memcached_options& o);

}  // namespace holdfast::store::memcached
