#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>
#include <vector>

#include "base/option.hpp"

namespace holdfast::store::etcd {

struct etcd_options {
  std::vector<std::string> hosts;  ///< "host:port"
  std::string base;                ///< "/locks", or "locks"; never with a slash at its end
  std::string user;
  std::string password;
  std::string url;   ///< for messages: without the password
  bool tls = false;  ///< the scheme etcds
  std::string ca;    ///< PEM files; empty: the machine's own
  std::string cert;
  std::string key;
  std::string server_name;  ///< the expected host of the certificate, if not the real one
  std::chrono::milliseconds session = std::chrono::seconds(30);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  std::chrono::milliseconds command_timeout = std::chrono::seconds(2);
  holdfast::clock* clock = &real_clock();
};

/// Reads `etcd://user:password@h1,h2:2379/prefix?option=value`; etcds for TLS. The default port is
/// 2379.
result<etcd_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::etcd
