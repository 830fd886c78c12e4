#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>
#include <string_view>

namespace holdfast::store::zookeeper {

struct zookeeper_options {
  std::string hosts;  ///< host:port,host:port
  std::string base;   ///< "/locks"; empty: the root
  std::string user;   ///< of the scheme digest
  std::string password;
  std::string url;           ///< for messages: without the password
  bool private_acl = false;  ///< what is created is for this user only
  std::chrono::milliseconds session = std::chrono::seconds(30);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  std::chrono::milliseconds command_timeout = std::chrono::seconds(2);
  holdfast::clock* clock = nullptr;
};

/// `//user:password@h1,h2:2181/base`. Port 2181 where none is given.
result<zookeeper_options> parse_address(std::string_view rest);

/// `acl`, `password_env` or `password_file`.
status set_option(zookeeper_options& o, std::string_view name, const std::string& value);

/// What can only be judged when all options are known.
status check_options(zookeeper_options& o);

}  // namespace holdfast::store::zookeeper
