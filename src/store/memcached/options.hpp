#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>
#include <vector>

#include "base/option.hpp"

namespace holdfast::store::memcached {

using base::address;

struct memcached_options {
  std::vector<address> servers{};  ///< each name is on one of them
  std::string prefix = "holdfast";
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds command_timeout{2'000};
  std::string url{};
  holdfast::clock* clock = &real_clock();  ///< measures the waits of receive()
};

/// Reads `memcached://h1:11211,h2?option=value`. The default port is 11211.
result<memcached_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::memcached
