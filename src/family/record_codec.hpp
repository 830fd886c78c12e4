#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/rate.hpp>
#include <string>
#include <string_view>
#include <variant>

/// Records as text: JSON arrays by position. A person can read them, SQL can take them apart
/// (json_extract), and encoding or decoding one costs less than a microsecond.
///
///     [1,"mutex",capacity,last_fence,[holder…],[waiter…]]         shared_mutex, semaphore alike
///     [1,"latch",count,remaining,expires_at,[[owner,forget_at]…],[waiter…]]     see below
///     [1,"rate_limiter",buckets,last_fence,[],[],[bucket…],[[owner,forget_at]…]]
///     bucket: [id,version,unit,gain,step_us,capacity,used,at]
///     holder: [owner,weight,fence,expires_at,since_wall_at,peer,note,lingers]
///     waiter: [owner,weight,priority,lease_us,expires_at,since_wall_at,peer,note,lingers]
///
/// Whatever the kind, the third field is 0 only for a name that is not in use. The name of a lock
/// may become that of a latch or a limiter, and a lock's again: its last fence stays in the record.
/// A latch stores that fence as an eighth field, if there is one.
/// The first number is the version of this format: a reader refuses a newer one. A time or a count
/// of units beyond 2^60 or -2^60 is corrupt.
namespace holdfast::family {

inline constexpr int record_version = 1;

using any_record = std::variant<store::permits_record, store::countdown_record, store::rate_record>;

/// Appends to `text`, which is usually a reused buffer.
void encode(const store::permits_record& record, std::string& text);
void encode(const store::countdown_record& record, std::string& text, std::uint64_t last_fence = 0);
void encode(const store::rate_record& record, std::string& text, std::uint64_t last_fence = 0);

/// Reads exactly what encode writes. Fails with errc::newer_format, errc::foreign_data (not
/// holdfast's) or errc::corrupt. `last_fence` becomes the one in the record, whatever its kind.
result<any_record> decode(std::string_view text, std::uint64_t& last_fence);
result<any_record> decode(std::string_view text);

}  // namespace holdfast::family
