#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <string>

#include "base/option.hpp"

namespace holdfast::store::sqlite {

/// Words as in the URL; others are errc::invalid_argument.
struct sqlite_options {
  std::string path{};
  std::string url{};  ///< for messages; empty: made from the path
  /// How hard a commit tries to survive a power cut (a crash of the process loses nothing in any):
  /// `off`, which may damage the file; `normal`, which may undo the last commits, all of processes
  /// that the power cut ended; `full`, which waits for the disk each time.
  std::string synchronous = "normal";
  /// Whose members share the file: a name or a number. Empty: it keeps the rights that it has.
  std::string group{};
  /// `write`, or `read` what others hold without the right to write.
  std::string access = "write";
  /// `refuse` a network file system, or `allow` one that this machine alone uses.
  std::string network = "refuse";
  /// The longest wait for the transactions of others on the file, in all. At most an hour.
  std::chrono::milliseconds busy_timeout{5'000};
  /// How often to look whether the file is still at its path. Zero: before every operation.
  std::chrono::microseconds look_at_path_every{10'000};
  /// For the waits in inbox().receive(), nothing else. Must outlive the store.
  holdfast::clock* clock = &real_clock();
};

/// `sqlite:PATH?option=value`, `sqlite:///PATH`.
result<sqlite_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::sqlite
