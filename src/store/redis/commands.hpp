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

/// The words of the ports as calls of the scripts, and the scripts' answers as replies. The order
/// of arguments and items is written down at the head of each script.
namespace holdfast::store::redis {

/// Where the names live, and how their waiters are told; and, for tests only, what time it is to
/// be.
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
/// Acquisitions of different names whose keys are on one server; with tokens of one more, if any.
void append_together(std::string& to, const script_frame& frame, std::span<const named_command> all,
                     const rate_question* tokens = nullptr);
void append_countdown(std::string& to, const script_frame& frame, std::string_view name,
                      const countdown_command& command);

void append_rate(std::string& to, const script_frame& frame, std::string_view name,
                 const rate_command& command);

/// The server's time, if it is in the answer of one of our scripts, which it must be.
std::optional<std::int64_t> server_time_in(const resp_value& answer) noexcept;

/// `lease_us` is what was asked for.
result<permits_reply> read_permits(const resp_value& answer, permits_verb verb,
                                   std::int64_t lease_us);
result<std::vector<permits_reply>> read_together(const resp_value& answer,
                                                 std::span<const named_command> all);
result<admission> read_admission(const resp_value& answer, const named_command& asks,
                                 std::size_t buckets);
result<countdown_reply> read_countdown(const resp_value& answer, countdown_verb verb);
result<rate_reply> read_rate(const resp_value& answer, std::size_t buckets);
/// The answers to TIME and to GETRANGE of some buckets' keys, of which a damaged one may be longer
/// than any: of one that is not there nothing is used. The ids are left empty.
result<bucket_list> read_buckets(std::span<const resp_value> answers);

}  // namespace holdfast::store::redis
