#pragma once

#include <holdfast/error.hpp>

/// The program's exit codes. docs/cli.md has the table for people.
namespace holdfast::tool::exit_code {

inline constexpr int ok = 0;
inline constexpr int declined = 1;        ///< force-unlock: a holder keeps the lock
inline constexpr int warned = 1;          ///< doctor: warnings, and no problem
inline constexpr int usage = 64;          ///< EX_USAGE
inline constexpr int unavailable = 69;    ///< EX_UNAVAILABLE: the store
inline constexpr int busy = 75;           ///< EX_TEMPFAIL: "the user is invited to retry"
inline constexpr int not_permitted = 77;  ///< EX_NOPERM
inline constexpr int config = 78;         ///< EX_CONFIG
inline constexpr int lost = 79;           ///< the first number after sysexits.h
inline constexpr int max_run = 124;       ///< these four as timeout(1) and env(1) have them
inline constexpr int own_failure = 125;
inline constexpr int not_executable = 126;
inline constexpr int not_found = 127;

/// As a shell reports a process that died of a signal.
constexpr int of_signal(int number) noexcept { return 128 + number; }

/// The exit code for a failure of the library.
int of(errc code) noexcept;

/// The exit code for a status from waitpid(2).
int of_child(int wait_status) noexcept;

/// The exit code for a failed exec.
int of_exec(int error_number) noexcept;

}  // namespace holdfast::tool::exit_code
