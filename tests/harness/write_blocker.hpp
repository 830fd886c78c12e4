#pragma once

#include <stdexcept>
#include <string>

#include "harness/program.hpp"

namespace harness {

/// Holds SQLite's write lock on a file: nobody can change anything, or renew, while this object
/// lives. Once it is constructed, no other process is inside a transaction that changes the file.
class write_blocker {
 public:
  explicit write_blocker(const std::string& file, const surroundings& around = {})
      : process_({"sqlite3", "-bail", file}, around) {
    process_.tell(".timeout 60000\nbegin immediate; select 'blocked';\n");
    if (process_.out.line() != "blocked") throw std::runtime_error("sqlite3 could not block");
  }

 private:
  program process_;
};

}  // namespace harness
