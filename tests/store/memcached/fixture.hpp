#pragma once

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <string>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/memcached_server.hpp"

namespace memcached_test {

using namespace std::chrono_literals;
using harness::contains;
using harness::outcome_of;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;

/// A server of the test's own.
class memcached_store : public testing::Test {
 protected:
  holdfast::session open(const std::string& options = {}, holdfast::session_options o = {}) const {
    return holdfast::open(server_.url(options), std::move(o));
  }
  /// The value of the key of "orders"; empty if there is none.
  std::string value() const { return value_of("orders"); }
  std::string value_of(const std::string& name) const {
    const auto said = server_.ask("mg holdfast:" + name + " v\r\n");
    const auto from = said.find("\r\n");
    return said.starts_with("VA") ? said.substr(from + 2, said.size() - from - 4) : "";
  }
  /// Another program's write to the key, with any content.
  void put(const std::string& text, const std::string& key = "holdfast:orders") const {
    ASSERT_EQ(server_.ask("ms " + key + " " + std::to_string(text.size()) + "\r\n" + text + "\r\n"),
              "HD\r\n");
  }
  static std::string foreign_record() {
    return "hf1 0123456789abcdef0123456789abcdef mutex 1 0 0 other 1 program";
  }

  harness::memcached_server server_;
};

}  // namespace memcached_test
