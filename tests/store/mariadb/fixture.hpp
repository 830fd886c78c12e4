#pragma once

#include <gtest/gtest.h>
#include <mysql.h>

#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/mariadb_server.hpp"
#include "harness/shared_servers.hpp"

namespace mariadb_test {

using harness::contains;
using harness::outcome_of;
using outcome = harness::failing;

/// Another client of the same server, by its library alone, as admin.
class client {
 public:
  explicit client(int port);
  client(const client&) = delete;
  /// The first column of the first row; throws the server's error.
  std::string ask(const std::string& statements) const;

 private:
  std::unique_ptr<MYSQL, void (*)(MYSQL*)> connection_;
};

/// A name that nothing else has.
std::string fresh_name();

/// On a server that tests share: a database, and a user without rights, of this test's own.
class mariadb_store : public testing::Test {
 protected:
  mariadb_store();
  ~mariadb_store() override;

  int port() const;
  std::string url(const std::string& options = {}) const { return base_ + database_ + options; }
  holdfast::session open(const std::string& options = {}) const {
    return holdfast::open(url(options));
  }
  /// For calls that keep trying while the store is away.
  holdfast::session impatient(const std::string& options = {}) const;
  /// Lets the user of this test use the tables.
  void let_user(const std::string& more = {}) const;
  std::string url_of_user(const std::string& options = {}) const;
  std::string ask(const std::string& statements) const { return admin_.ask(statements); }
  std::string table(const std::string& name) const { return "`" + database_ + "`." + name; }

  const std::string base_ = harness::url_of_servers("mariadb");
  const std::string database_ = fresh_name();
  const std::string user_ = fresh_name();
  const client admin_{port()};
};

}  // namespace mariadb_test
