#include <gtest/gtest.h>

#include "store/postgres/options.hpp"
#include "store/sql/url_rules.hpp"

namespace postgres_test {
namespace {

std::string shown(const std::string& url) {
  const auto o = holdfast::store::postgres::read_options(*holdfast::base::parse_url(url));
  return o ? o->url : o.error().what;
}

// Two stores with one URL would be taken for one.
TEST(postgres_urls, that_are_shown_name_the_database_wherever_it_was_configured) {
  EXPECT_EQ(shown("postgres://me:pw@h/db"), "postgres://me@h/db");
  EXPECT_EQ(shown("postgres://h/db?connections=2&sslmode=disable"), "postgres://h/db");
  EXPECT_EQ(shown("postgres://h/db?dbname=db"), "postgres://h/db");
  EXPECT_EQ(shown("postgres://h?dbname=db"), "postgres://h/db");
  EXPECT_EQ(shown("postgres://h/db?user=you"), "postgres://you@h/db");
  EXPECT_EQ(shown("postgres://h/db?schema=locks"), "postgres://h/db?schema=locks");
  EXPECT_EQ(shown("postgres://h/db?schema=a%26b"), "postgres://h/db?schema=a%26b");
  EXPECT_EQ(shown("postgres://h/db?schema=public&mode=lease"), "postgres://h/db") << "the usual";
  EXPECT_EQ(shown("postgres://h/db?mode=session"), "postgres://h/db?mode=session");
  EXPECT_EQ(shown("postgres:///db?service=locks"), "postgres:///db?service=locks");
}

TEST(postgres_urls, that_are_shown_name_the_hosts_and_ports_as_libpq_reads_them) {
  EXPECT_EQ(shown("postgres:///db?host=i"), "postgres://i:5432/db");
  EXPECT_EQ(shown("postgres://h/db?port=2"), "postgres://h:2/db");
  EXPECT_EQ(shown("postgres:///db?host=h,::1&port=1,2"), "postgres://h:1,[::1]:2/db");
  EXPECT_EQ(shown("postgres:///db?host=h,i&port=2"), "postgres://h:2,i:2/db");
  EXPECT_EQ(shown("postgres:///db?host=/run/pg"), "postgres:///db?host=/run/pg");
  EXPECT_EQ(shown("postgres:///db?host=/run/pg&port=1"), "postgres:///db?host=/run/pg&port=1");
  EXPECT_EQ(shown("postgres:///db?port=2"), "postgres:///db?port=2");
  EXPECT_EQ(shown("postgres://h/db?hostaddr=127.0.0.1"), "postgres://h/db?hostaddr=127.0.0.1");
}

TEST(postgres_urls, that_contradict_themselves_are_refused_and_not_repeated) {
  const auto refused = [](const std::string& url, const std::string& what) {
    EXPECT_NE(shown(url).find("names two " + what + ": one before the ?"), std::string::npos)
        << shown(url);
  };
  refused("postgres://h/db?dbname=other", "databases");
  refused("postgres://me@h/db?user=you", "users");
  refused("postgres://h/db?host=i", "hosts");
  refused("postgres://h:1/db?host=/run/pg", "hosts");
  refused("postgres://h:1/db?port=2", "ports");
  refused("postgres://h:1,i/db?port=2,3", "ports");
  refused("postgres://localhost/db?host=127.0.0.1", "hosts");
  EXPECT_EQ(shown("postgres://localhost/db?host=/run/pg"), shown("postgres:///db?host=/run/pg"))
      << "where a URL has to have a host";
}

// A person may write a whole URL in the place of the database's name.
TEST(postgres_urls, that_are_shown_hold_no_password_wherever_it_was_written) {
  for (const std::string url :
       {"postgres://me:s3cret@h/db", "postgres://h/db?dbname=postgres://me:s3cret%40h/db",
        "postgres://h/db?user=me:s3cret", "postgres://h/db?host=me:s3cret%40i"}) {
    EXPECT_EQ(shown(url).find("s3cret"), std::string::npos) << shown(url);
  }
}

TEST(postgres_urls, with_a_time_out_of_bounds_are_refused_with_the_bounds) {
  sql_test::times_out_of_bounds_are_refused_with_the_bounds("postgres://h/db", shown);
}

}  // namespace
}  // namespace postgres_test
