#pragma once

#include <array>
#include <cstddef>
#include <string_view>

/// The causes of lost leases: the texts of events (event::detail), and for each text one of a few
/// words by which losses are counted.
namespace holdfast::losses {

inline constexpr std::string_view taken_away =
    "the store says that it is no longer held: it was taken away (force-unlock), or the store "
    "lost its data";
inline constexpr std::string_view gone_at_release =
    "it was no longer held when it was released: it was taken away (force-unlock), or the store "
    "lost its data";
inline constexpr std::string_view lease_ended = "the lease ended before it was renewed";
inline constexpr std::string_view ended_at_release = "the lease had ended when it was released";
inline constexpr std::string_view ended_with_users =
    "the lease had ended when one of its users released it";
inline constexpr std::string_view no_majority = "the lease ended before a majority had renewed it";
inline constexpr std::string_view max_hold_over =
    "the lock was held for as long as max_hold allows";
inline constexpr std::string_view unanswered = "the store did not answer until the lease ended";
inline constexpr std::string_view refused = "renewals failed until the lease ended";
inline constexpr std::string_view not_run = "the lease ended before this process ran again";
inline constexpr std::string_view outcome_unknown =
    "the store did not say whether it carried out the downgrade: readers may already hold the lock";

inline constexpr std::array<std::string_view, 6> causes{"taken",      "expired", "max_hold",
                                                        "connection", "paused",  "unknown"};

/// The index in `causes`; the last one for any other text.
constexpr std::size_t cause_of(std::string_view detail) noexcept {
  if (detail == taken_away || detail == gone_at_release) return 0;
  for (const auto ended : {lease_ended, ended_at_release, ended_with_users, no_majority})
    if (detail == ended) return 1;
  if (detail == max_hold_over) return 2;
  if (detail == unanswered || detail == refused) return 3;
  if (detail == not_run) return 4;
  return causes.size() - 1;
}

}  // namespace holdfast::losses
