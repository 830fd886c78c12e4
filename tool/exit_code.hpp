#pragma once

#include <holdfast/error.hpp>

/// The numbers the program ends with. docs/cli.md has the table for people.
namespace holdfast::tool::exit_code {

inline constexpr int ok = 0;
inline constexpr int declined = 1;        ///< force-unlock: the person said no
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

/// What a failure of the library means to the caller of the program.
int of(errc code) noexcept;

/// What a status from waitpid(2) means.
int of_child(int wait_status) noexcept;

/// What a failed exec means.
int of_exec(int error_number) noexcept;

}  // namespace holdfast::tool::exit_code
