#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/rate.hpp>
#include <string>
#include <string_view>
#include <variant>

/// Records as text: JSON arrays by position, so that a person can read them and SQL can take them
/// apart (json_extract), and so that reading and writing one costs less than a microsecond.
///
///     [1,"mutex",capacity,last_fence,[holder…],[waiter…]]         shared_mutex, semaphore alike
///     [1,"latch",count,remaining,expires_at,[[owner,forget_at]…],[waiter…]]
///     [1,"rate_limiter",buckets,0,[],[],[bucket…],[[owner,forget_at]…]]
///     bucket: [id,version,unit,gain,step_us,capacity,used,at]
///     holder: [owner,weight,fence,expires_at,since_wall_at,peer,note,lingers]
///     waiter: [owner,weight,priority,lease_us,expires_at,since_wall_at,peer,note,lingers]
///
/// Whatever the kind, the third field is 0 only for a name that nobody uses.
/// The first number is the version of this format: a reader refuses a newer one.
namespace holdfast::family {

inline constexpr int record_version = 1;

using any_record = std::variant<store::permits_record, store::countdown_record, store::rate_record>;

/// Appends to `text`, which is usually a buffer that is used again.
void encode(const store::permits_record& record, std::string& text);
void encode(const store::countdown_record& record, std::string& text);
void encode(const store::rate_record& record, std::string& text);

/// Reads exactly what encode writes. errc::newer_format, errc::foreign_data (not ours),
/// errc::corrupt.
result<any_record> decode(std::string_view text);

}  // namespace holdfast::family
