#pragma once

#include <chrono>
#include <holdfast/result.hpp>
#include <holdfast/store/capabilities.hpp>
#include <string>
#include <string_view>

/// What may come in from a caller. Everything is checked here, before anything is changed.
namespace holdfast::base {

inline constexpr std::size_t max_reason_bytes = 200;
inline constexpr std::uint32_t max_permits = 1U << 30;

/// 1 to `max_bytes` bytes of UTF-8 without control characters.
status check_name(std::string_view name, std::size_t max_bytes);
status check_reason(std::string_view reason);
/// Within [min_lease, max_lease], and of a length that the store can keep.
status check_lease(std::chrono::milliseconds lease, const store::capabilities& can = {});

bool is_utf8(std::string_view text) noexcept;
bool has_control_characters(std::string_view text) noexcept;

/// For a message: at most `most` bytes of the text, and how long it is if that is not all.
std::string shortened(std::string_view text, std::size_t most);

/// Shell patterns: `*` any run, `?` any one byte.
bool matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace holdfast::base
