#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/postgres_server.hpp"
#include "harness/shared_servers.hpp"

namespace postgres_test {

using harness::contains;
using harness::outcome_of;
using outcome = harness::failing;

/// Another client of the same server, by libpq alone.
class client {
 public:
  /// From a URL of the store, without its options.
  explicit client(const std::string& url);
  client(const client&) = delete;
  /// The first column of the first row; throws the server's error.
  std::string ask(const std::string& statements) const;

 private:
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

/// A name that nothing else has.
std::string fresh_name();

/// On a server that tests share: a schema, and a user without rights, of this test's own.
class postgres_store : public testing::Test {
 protected:
  postgres_store();
  ~postgres_store() override;

  std::string url(const std::string& options = {}) const {
    return base_ + "?schema=" + schema_ + options;
  }
  holdfast::session open(const std::string& options = {}) const {
    return holdfast::open(url(options));
  }
  /// For calls that keep trying while the store is away.
  holdfast::session impatient(const std::string& options = {}) const;
  /// Lets the user of this test use the tables, and applies the setting with `alter role`.
  void let_user_with(const std::string& setting) const;
  /// As the user of this test.
  std::string url_of_user(const std::string& options = {}) const;
  std::string ask(const std::string& statements) const { return admin_.ask(statements); }
  std::string table(const std::string& name) const { return "\"" + schema_ + "\"." + name; }

  const std::string base_ = harness::url_of_servers("postgres");
  const std::string schema_ = fresh_name();
  const std::string user_ = fresh_name();
  const client admin_{base_};
};

}  // namespace postgres_test
