#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/rate.hpp>
#include <string>
#include <string_view>

#include "store/redis/redisson.hpp"

/// The rate limiter of Redisson (Java): a number of permits in every interval, shared by all
/// clients.
namespace holdfast::store::redis {

/// A command to its script. Fails if Redisson's limiter cannot do what the command needs.
result<std::string> redisson_call(const marked_key& at, const rate_command& c);

/// Reads the script's answer.
result<rate_reply> read_limiter(std::string_view key, const rate_command& c,
                                const resp_value& answer);

}  // namespace holdfast::store::redis
