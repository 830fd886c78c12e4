#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>

#include "base/option.hpp"

namespace holdfast::store::zookeeper {

struct zookeeper_options {
  std::string hosts;  ///< host:port,host:port
  std::string base;   ///< "/locks"; empty: the root
  std::string user;   ///< for the scheme digest
  std::string password;
  std::string url;           ///< for messages: without the password
  bool private_acl = false;  ///< created nodes are for this user only
  std::chrono::milliseconds session = std::chrono::seconds(30);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  std::chrono::milliseconds command_timeout = std::chrono::seconds(2);
  holdfast::clock* clock = &real_clock();
};

/// Reads `zookeeper://user:password@h1,h2:2181/base?option=value`. The default port is 2181.
result<zookeeper_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::zookeeper
