#pragma once

#include <chrono>
#include <holdfast/result.hpp>
#include <holdfast/store/capabilities.hpp>
#include <string>
#include <string_view>

/// Checks of a caller's input. Everything is checked here, before anything is changed.
namespace holdfast::base {

inline constexpr std::size_t max_reason_bytes = 200;
inline constexpr std::uint32_t max_permits = 1U << 30;

/// 1 to `max_bytes` bytes of UTF-8 without control characters.
status check_name(std::string_view name, std::size_t max_bytes);
status check_reason(std::string_view reason);
/// Within [min_lease, max_lease], and of a length that the store supports.
status check_lease(std::chrono::milliseconds lease, const store::capabilities& can = {});

bool is_utf8(std::string_view text) noexcept;
bool has_control_characters(std::string_view text) noexcept;

/// For a message: at most `most` bytes of the text; if that is not all, with its length.
std::string shortened(std::string_view text, std::size_t most);

/// Shell patterns: `*` matches any run, `?` any one byte.
bool matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace holdfast::base
