#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// Parses `500ms`, `1.5s`, `2m`, `1h30m`, `2d`; a bare number is seconds, as in flock(1). Throws
/// std::invalid_argument with one line that names the nearest valid form.
std::chrono::nanoseconds parse_duration(std::string_view text);

/// For people, at most two units: `850ms`, `4.2s`, `42s`, `2m5s`, `1h30m`, `3d4h`.
std::string format_duration(std::chrono::nanoseconds d);

/// For times of microseconds: `210us`, `3.1ms`, and then as format_duration.
std::string format_short_time(std::chrono::nanoseconds d);

}  // namespace holdfast::tool
