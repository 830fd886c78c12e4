#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <holdfast/election.hpp>
#include <holdfast/rate_limiter.hpp>
#include <holdfast/session.hpp>
#include <holdfast/store/capabilities.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/finding.hpp"
#include "tool/listed_name.hpp"
#include "tool/lock_events.hpp"
#include "tool/report.hpp"
#include "tool/round_trips.hpp"
#include "tool/wait_graph.hpp"

/// The JSON that the program prints, one line each, ended by a newline. Schema 1: fields are added,
/// never changed. Fences are strings: they do not fit into a double. Times are RFC 3339 and
/// seconds. Unknown values are absent.
namespace holdfast::tool {

using wall_time = std::chrono::system_clock::time_point;

struct held_facts {
  std::string lock;
  std::string store;
  std::string owner;
  std::uint64_t fence = 0;
  std::chrono::nanoseconds lease{};
  std::chrono::nanoseconds waited{};
};

std::string hold_json(const held_facts& f, wall_time now);
/// A later line of hold: "released" or "lost".
std::string hold_end_json(std::string_view event, const held_facts& f, wall_time now);
std::string try_json(const name_info& info, bool free, wall_time now);
/// One element of list_json's `locks`, without a newline.
std::string lock_json(const listed_name& one, wall_time now);
/// A text as a JSON string, with its quotes; invalid UTF-8 is replaced.
std::string json_text(std::string_view text);
std::string list_json(std::span<const listed_name> names, std::string_view store, wall_time now);
std::string show_json(const name_info& info, std::span<const rate_bucket> buckets,
                      std::string_view store, const store::capabilities& can, wall_time now);
/// `left`: holders that were not removed.
std::string force_unlock_json(std::string_view lock, std::string_view store, std::size_t removed,
                              std::size_t left, std::string_view reason, wall_time now);
std::string meet_json(std::string_view name, std::string_view store, std::string_view outcome,
                      std::uint32_t count, std::optional<std::uint32_t> remaining);
std::string limit_json(std::string_view name, std::string_view store, std::string_view outcome,
                       const rate_decision& d);
/// Without "leader" if the store did not answer.
std::string leader_json(std::string_view name, const result<std::optional<leader>>& found);
std::string watch_json(std::string_view lock, std::string_view store, const lock_event& e,
                       wall_time now);
std::string graph_json(const wait_graph& g, std::string_view store, wall_time now);
/// The line that `serve` prints when it listens. `token` may be empty.
std::string serve_json(std::string_view url, std::string_view token);
/// One round trip; without a time it failed, and `error` is the reason.
std::string ping_json(std::string_view store, std::size_t number,
                      std::optional<std::chrono::nanoseconds> took, std::string_view error);
std::string ping_summary_json(std::string_view store, const ping_summary& s);
std::string doctor_json(std::string_view store, std::span<const finding> all, int exit_code,
                        wall_time now);
std::string version_json(std::string_view version, std::span<const std::string> stores);
std::string status_json(const run_report& r);

}  // namespace holdfast::tool
