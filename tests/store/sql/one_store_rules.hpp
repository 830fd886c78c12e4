#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <holdfast/holdfast.hpp>
#include <string>

#include "harness/failing.hpp"

/// What every store on a database has to say of itself and of what others wrote to it.
namespace sql_test {

/// The same server, in another spelling.
inline std::string spelled_otherwise(std::string url) {
  return url.replace(url.find("127.0.0.1"), 9, "127.1");
}

/// Two URLs of one store: a quorum that had both would count it twice.
inline void expect_one_store(const holdfast::session& a, const holdfast::session& b) {
  ASSERT_NE(a.url(), b.url());
  holdfast::redlock twice{{a, b}, "m"};
  const auto refused = harness::outcome_of([&] { (void)twice.try_acquire(); });
  EXPECT_EQ(refused.reason, holdfast::errc::invalid_argument) << refused.text;
  EXPECT_TRUE(a.show("m").holders.empty());
}

inline void expect_two_stores(const holdfast::session& a, const holdfast::session& b) {
  holdfast::redlock both{{a, b}, "m"};
  EXPECT_TRUE(both.try_acquire());
}

/// Tables made without an id: another spelling is another store, the same one is not.
inline void expect_known_by_url(const std::string& url) {
  const auto open = [&] { return holdfast::open(url); };
  expect_two_stores(open(), holdfast::open(spelled_otherwise(url)));
  holdfast::redlock twice{{open(), open()}, "m"};
  EXPECT_EQ(harness::outcome_of([&] { (void)twice.try_acquire(); }).reason,
            holdfast::errc::invalid_argument);
}

/// A record that somebody else made far too long.
inline void expect_it_is_not_read(const holdfast::session& s, const std::string& name) {
  const auto refused = harness::outcome_of([&] { (void)s.show(name); });
  EXPECT_EQ(refused.reason, holdfast::errc::corrupt);
  EXPECT_TRUE(harness::contains(refused.text, "16 MiB")) << refused.text;
  EXPECT_EQ(harness::outcome_of([&] { (void)holdfast::mutex(s, name).try_acquire(); }).reason,
            holdfast::errc::corrupt);
  const auto names = s.names();
  EXPECT_EQ(std::count(names.begin(), names.end(), name), 1);
  EXPECT_TRUE(holdfast::mutex(s, "another").try_acquire());
}

}  // namespace sql_test
