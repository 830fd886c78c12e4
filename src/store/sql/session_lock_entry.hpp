#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/command.hpp>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "store/sql/lock_link.hpp"

namespace holdfast::store::sql {

/// A holder or a waiter of this session.
struct session_lock_entry {
  owner_id owner{};
  std::string name;
  store::kind kind = kind::mutex;
  std::uint32_t capacity = 1;
  std::uint32_t weight = 1;
  bool held = false;
  std::unique_ptr<lock_link> own;  ///< null: uses the home connection, or (waiting) none
  std::uint64_t fence = 0;
  std::int64_t lease_us = 0;
  boot_time ends{};  ///< when it is given up, unless renewed
  /// The latest time from which the server certainly counts the silence of its connection: just
  /// before the last answered request was sent, or when an unfinished wait began.
  boot_time heard{};
  std::string peer{};
  std::string note{};

  lock_mode mode() const noexcept {
    return weight < capacity ? lock_mode::shared : lock_mode::exclusive;
  }
  bool waits_at_server() const noexcept { return !held && own != nullptr; }
};

using session_lock_entries = std::list<session_lock_entry>;

}  // namespace holdfast::store::sql
