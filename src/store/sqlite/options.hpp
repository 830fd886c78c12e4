#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <string>

#include "base/option.hpp"

namespace holdfast::store::sqlite {

/// Words have the spelling of the URL; unknown words are errc::invalid_argument.
struct sqlite_options {
  std::string path{};
  std::string url{};  ///< for messages; empty: made from the path
  /// How hard a commit tries to survive a power cut (a crash of the process never loses anything):
  /// `off`, which may damage the file; `normal`, which may lose the last commits, all of them of
  /// processes that the power cut ended; `full`, which waits for the disk each time.
  std::string synchronous = "normal";
  /// The group whose members share the file: a name or a number. Empty: the file keeps its rights.
  std::string group{};
  /// `write`, or `read`: inspect locks without the right to write.
  std::string access = "write";
  /// Whether to `refuse` a network file system, or to `allow` one that only this machine uses.
  std::string network = "refuse";
  /// The longest total wait for transactions of other processes on the file. At most an hour.
  std::chrono::milliseconds busy_timeout{5'000};
  /// How often to check that the file is still at its path. Zero: before every operation.
  std::chrono::microseconds look_at_path_every{10'000};
  /// Used only for the waits in inbox().receive(). Must outlive the store.
  holdfast::clock* clock = &real_clock();
};

/// `sqlite:PATH?option=value`, `sqlite:///PATH`.
result<sqlite_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::sqlite
