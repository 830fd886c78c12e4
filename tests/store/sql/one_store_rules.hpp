#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <holdfast/holdfast.hpp>
#include <string>
#include <vector>

#include "harness/failing.hpp"
#include "session/session_impl.hpp"

/// Rules of every store on a database: its identity, and its reading of what others wrote to it.
namespace sql_test {

/// The same server, in another spelling.
inline std::string spelled_otherwise(std::string url) {
  return url.replace(url.find("127.0.0.1"), 9, "127.1");
}

/// Two URLs of one store: a quorum that had both would count it twice.
inline void expect_one_store(const holdfast::session& a, const holdfast::session& b) {
  ASSERT_NE(a.url(), b.url()) << "else nobody asks the store who it is";
  holdfast::redlock twice{{a, b}, "m"};
  const auto refused = harness::outcome_of([&] { (void)twice.try_acquire(); });
  EXPECT_EQ(refused.reason, holdfast::errc::invalid_argument) << refused.text;
  holdfast::semaphore some(a, "some", 2), same(b, "some", 2);
  const auto in_vain =
      harness::outcome_of([&] { (void)holdfast::multi_lock{some, same}.acquire(); });
  EXPECT_EQ(in_vain.reason, holdfast::errc::invalid_argument) << in_vain.text;
  EXPECT_EQ(some.available(), 2u);
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

/// A batch of a session is carried out for the other names nevertheless: otherwise one name would
/// cost the session all its leases.
inline void expect_it_fails_alone(const holdfast::session& s, const std::string& name) {
  holdfast::store::permits_command c;
  c.verb = holdfast::store::permits_verb::acquire;
  c.capacity = 1;
  c.lease_us = 10'000'000;
  c.owner = {1, 1};
  const holdfast::store::named_command all[] = {{"a", c}, {name, c}, {"z", c}};
  const auto replies = s.impl()->permits(all);
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_TRUE(replies[0]);
  EXPECT_FALSE(replies[1]);
  EXPECT_TRUE(replies[2]);
}

/// A record that another program made far too long.
inline void expect_it_is_not_read(const holdfast::session& s, const std::string& name) {
  const auto refused = harness::outcome_of([&] { (void)s.show(name); });
  EXPECT_EQ(refused.reason, holdfast::errc::corrupt);
  EXPECT_TRUE(harness::contains(refused.text, "16 MiB")) << refused.text;
  EXPECT_EQ(harness::outcome_of([&] { (void)holdfast::mutex(s, name).try_acquire(); }).reason,
            holdfast::errc::corrupt);
  const auto names = s.names();
  EXPECT_EQ(std::count(names.begin(), names.end(), name), 1);
  EXPECT_TRUE(holdfast::mutex(s, "another").try_acquire());
  expect_it_fails_alone(s, name);
}

/// Of names that many use, some hundred records are more than a server accepts in one statement. A
/// loaded machine needs seconds for it, so the session must allow requests to take longer.
inline void expect_a_large_batch_is_carried_out(const holdfast::session& s) {
  constexpr std::uint32_t users = 60;
  const std::string note(200, 'n');
  std::vector<std::string> names;
  for (int i = 0; i < 500; ++i) names.push_back("crowded " + std::to_string(1000 + i));
  std::vector<holdfast::store::named_command> all;
  for (const auto& name : names) {
    for (std::uint32_t user = 1; user <= users; ++user) {
      holdfast::store::permits_command c;
      c.verb = holdfast::store::permits_verb::acquire;
      c.kind = holdfast::store::kind::semaphore;
      c.capacity = users;
      c.lease_us = 60'000'000;
      c.owner = {1, user};
      c.note = note;
      all.push_back({name, c});
    }
  }
  for (const auto& reply : s.impl()->permits(all)) ASSERT_TRUE(reply) << reply.error().what;
  EXPECT_EQ(s.show(names.front()).holders.size(), users);
  EXPECT_EQ(s.show(names.back()).holders.size(), users);
}

}  // namespace sql_test
