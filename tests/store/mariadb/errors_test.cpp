#include "store/mariadb/errors.hpp"

#include <gtest/gtest.h>

// The server's errors in the library's terms.
namespace {

using holdfast::errc;
using holdfast::store::mariadb::ends_connection;
using holdfast::store::mariadb::proves_that_nothing_was_done;
using holdfast::store::mariadb::server_says;

TEST(mariadb_errors, a_server_short_of_memory_or_threads_is_unavailable) {
  for (const unsigned number : {1037U, 1038U, 1041U, 1135U}) {
    EXPECT_EQ(server_says(number, "…").code, errc::unavailable) << number;
  }
}

TEST(mariadb_errors, an_error_of_the_client_library_is_no_answer_of_the_server) {
  const auto away = server_says(2003, "Can't connect to server on '127.0.0.1' (111)");
  EXPECT_EQ(away.code, errc::unavailable);
  EXPECT_EQ(away.what.find("the server answered"), std::string::npos) << away.what;
}

TEST(mariadb_errors, a_blocked_host_is_unavailable_and_the_error_names_the_remedy) {
  const auto blocked = server_says(1129, "Host 'app' is blocked because of many connection errors");
  EXPECT_EQ(blocked.code, errc::unavailable);
  EXPECT_NE(blocked.what.find("flush hosts"), std::string::npos) << blocked.what;
}

TEST(mariadb_errors, every_error_of_a_full_disk_is_no_space) {
  constexpr auto said = "Got error 28 \"No space left on device\" from storage engine InnoDB";
  for (const unsigned number : {1021U, 1030U, 1114U, 1180U}) {
    EXPECT_EQ(server_says(number, said).code, errc::no_space) << number;
  }
}

TEST(mariadb_errors, of_the_options_that_forbid_a_statement_read_only_is_told_apart) {
  const auto said = [](const std::string& option) {
    return server_says(1290, "The MariaDB server is running with the --" + option +
                                 " option so it cannot execute this statement");
  };
  for (const std::string option : {"read-only", "innodb-read-only"}) {
    EXPECT_EQ(said(option).code, errc::read_only) << option;
  }
  EXPECT_EQ(said("max-session-mem-used=8192").code, errc::unavailable);
  EXPECT_EQ(server_says(1290,
                        "The MariaDB server is running with the NO_ENGINE_SUBSTITUTION option "
                        "so it cannot execute this statement")
                .code,
            errc::unsupported);
}

TEST(mariadb_errors, a_server_without_innodb_is_unsupported) {
  for (const unsigned number : {1193U, 1286U}) {
    const auto refused = server_says(number, "Unknown system variable, or storage engine");
    EXPECT_EQ(refused.code, errc::unsupported) << number;
    EXPECT_NE(refused.what.find("InnoDB"), std::string::npos) << refused.what;
  }
}

TEST(mariadb_errors, another_failure_of_the_storage_engine_is_unavailable) {
  for (const auto* said : {"Got error 5 \"Input/output error\" from storage engine InnoDB",
                           "Got error 280 from storage engine InnoDB"}) {
    EXPECT_EQ(server_says(1030, said).code, errc::unavailable) << said;
  }
}

TEST(mariadb_errors, a_commit_that_failed_is_checked_over_a_new_connection) {
  constexpr auto said = "Got error 149 \"Lock deadlock; Retry transaction\" during COMMIT";
  EXPECT_EQ(server_says(1180, said).code, errc::unavailable);
  EXPECT_TRUE(ends_connection(1180));
}

// Of a statement, and of a commit: each was seen at a server.
TEST(mariadb_errors, a_statement_that_the_server_ended_was_undone) {
  for (const unsigned number : {1205U, 1969U, 1317U, 1142U, 1146U}) {
    EXPECT_TRUE(proves_that_nothing_was_done(number)) << number;
  }
  for (const unsigned number : {1180U, 1053U, 1927U, 2013U, 2026U, 9001U}) {
    EXPECT_FALSE(proves_that_nothing_was_done(number)) << number;
  }
}

}  // namespace
