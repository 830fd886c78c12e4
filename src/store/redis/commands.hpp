#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/rate.hpp>
#include <holdfast/store/store.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/redis/resp.hpp"
#include "store/redis/scripts.hpp"

/// Converts the commands of the store interfaces to calls of the scripts, and the scripts' answers
/// to replies. The head of each script documents the order of arguments and items.
namespace holdfast::store::redis {

/// The key prefix, and how waiters are notified; in tests only, also the time to use.
struct script_frame {
  std::string_view prefix;
  publication how = publication::to_all;
  std::optional<std::int64_t> time{};
};

void append_permits(std::string& to, const script_frame& frame, std::string_view name,
                    const permits_command& command);
struct rate_question {
  std::string_view name;
  const rate_command& command;
};
/// Appends acquisitions of different names whose keys are on one server; optionally with tokens of
/// a limiter.
void append_together(std::string& to, const script_frame& frame, std::span<const named_command> all,
                     const rate_question* tokens = nullptr);
void append_countdown(std::string& to, const script_frame& frame, std::string_view name,
                      const countdown_command& command);

void append_rate(std::string& to, const script_frame& frame, std::string_view name,
                 const rate_command& command);

/// The server's time, if the answer is one of our scripts', which it must be.
std::optional<std::int64_t> server_time_in(const resp_value& answer) noexcept;

/// `lease_us` is the requested lease.
result<permits_reply> read_permits(const resp_value& answer, permits_verb verb,
                                   std::int64_t lease_us);
result<std::vector<permits_reply>> read_together(const resp_value& answer,
                                                 std::span<const named_command> all);
result<admission> read_admission(const resp_value& answer, const named_command& asks,
                                 std::size_t buckets);
result<countdown_reply> read_countdown(const resp_value& answer, countdown_verb verb);
result<rate_reply> read_rate(const resp_value& answer, std::size_t buckets);
/// Reads the answers to TIME and to GETRANGE of some buckets' keys. A damaged bucket's text may be
/// longer than any valid one. A missing bucket counts as unused. The ids are left empty.
result<bucket_list> read_buckets(std::span<const resp_value> answers);

}  // namespace holdfast::store::redis
