#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>
#include <holdfast/store/state_store.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/temp_dir.hpp"
#include "store/sqlite/sqlite.hpp"

/// The common parts of this driver's tests: a folder, sessions on a file in it, and small
/// transitions, so that no engine is needed.
namespace sqlite_test {

using holdfast::errc;
using holdfast::failure;
using holdfast::status;
using holdfast::store::moment;
using holdfast::store::notification;
using holdfast::store::notification_kind;
using holdfast::store::state_store;
using holdfast::store::transition;
using holdfast::store::sqlite::sqlite_options;

using session = std::unique_ptr<state_store>;

session open(sqlite_options options);  ///< throws the failure
session open(const std::string& path);
/// The failure of opening; a test that expects a failure and gets none fails.
failure refusal(sqlite_options options);
failure refusal(const std::string& path);

/// A transition made of a function from the old record to the new one, or to nothing.
class rule final : public transition {
 public:
  using function = std::function<const std::string*(const std::string& record, std::string& next)>;
  explicit rule(function decide) : decide_(std::move(decide)) {}
  const std::string* apply(std::string_view record, const moment& now) override;
  bool only_asks() const noexcept override { return asks; }

  bool asks = false;
  int calls = 0;
  std::string seen;
  moment at;

 private:
  function decide_;
  std::string next_;
};

rule writes(std::string text);
rule reads();       ///< changes nothing; `seen` is the record
rule increments();  ///< a decimal number

std::string record_of(state_store& store, std::string_view name);
long number_of(state_store& store, std::string_view name);

/// A connection as an operator has it with the sqlite3 shell.
class shell {
 public:
  explicit shell(const std::string& file);
  ~shell();
  shell(const shell&) = delete;
  shell& operator=(const shell&) = delete;
  void run(const std::string& sql);
  /// Rows with their columns joined by '|'.
  std::vector<std::string> ask(const std::string& sql);
  std::string ask_one(const std::string& sql);

 private:
  sqlite3* db_ = nullptr;
};

std::string bytes_of(const std::string& file);
void write_bytes(const std::string& file, std::string_view bytes);

/// File permissions mean nothing to root. While this object lives, the thread has only an ordinary
/// user's rights to files (of a user who is not the owner, if this is root).
class as_ordinary_user {
 public:
  as_ordinary_user();
  ~as_ordinary_user();
};

/// Calls `body` in a forked child of this very program; true if it returned true there.
bool in_child(const std::function<bool()>& body);

class sqlite_store : public testing::Test {
 protected:
  std::string path(const std::string& name = "locks.db") const { return dir_.file(name); }
  harness::temp_dir dir_;
};

}  // namespace sqlite_test
