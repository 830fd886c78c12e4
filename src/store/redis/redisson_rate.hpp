#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/rate.hpp>
#include <string>
#include <string_view>

#include "store/redis/redisson.hpp"

/// The rate limiter of Redisson (Java): so many permits in every interval, for all together.
namespace holdfast::store::redis {

/// A command to its script. A failure if Redisson's limiter cannot do what is asked for.
result<std::string> redisson_call(const marked_key& at, const rate_command& c);

/// What the script answered.
result<rate_reply> read_limiter(std::string_view key, const rate_command& c,
                                const resp_value& answer);

}  // namespace holdfast::store::redis
