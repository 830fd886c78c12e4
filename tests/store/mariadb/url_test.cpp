#include <gtest/gtest.h>

#include "store/mariadb/options.hpp"
#include "store/sql/url_rules.hpp"

namespace mariadb_test {
namespace {

std::string shown(const std::string& url) {
  const auto o = holdfast::store::mariadb::read_options(*holdfast::base::parse_url(url));
  return o ? o->url : o.error().what;
}

// Two stores with one URL would be taken for one.
TEST(mariadb_urls, that_are_shown_name_the_database_wherever_it_was_configured) {
  EXPECT_EQ(shown("mariadb://me:pw@h/db"), "mariadb://me@h/db");
  EXPECT_EQ(shown("mysql://h:1/db?connections=2&mode=lease"), "mysql://h:1/db");
  EXPECT_EQ(shown("mariadb://h/db?mode=session"), "mariadb://h/db?mode=session");
  EXPECT_EQ(shown("mariadb:///db?socket=/run/a.sock"), "mariadb:///db?socket=/run/a.sock");
  EXPECT_EQ(shown("mariadb:///db?defaults_file=/etc/a.cnf"),
            "mariadb:///db?defaults_file=/etc/a.cnf");
  EXPECT_EQ(shown("mariadb://h/db?defaults_file=/etc/a.cnf"), "mariadb://h/db");
}

TEST(mariadb_urls, that_name_a_host_and_a_socket_are_refused) {
  EXPECT_NE(shown("mariadb://h/db?socket=/run/a.sock").find("a host and a socket="),
            std::string::npos);
  EXPECT_EQ(shown("mariadb://localhost/db?socket=/run/a.sock"),
            "mariadb://localhost/db?socket=/run/a.sock");
}

TEST(mariadb_urls, with_a_time_out_of_bounds_are_refused_with_the_bounds) {
  sql_test::times_out_of_bounds_are_refused_with_the_bounds("mariadb://h/db", shown);
}

}  // namespace
}  // namespace mariadb_test
