#pragma once

#include <string>
#include <string_view>

#include "tool/faultproxy/relay.hpp"

namespace holdfast::faultproxy {

/// The commands, as --help shows them.
std::string_view commands() noexcept;

/// Executes one line, and returns the answer: "ok", or the line of `status`. Throws
/// std::invalid_argument with the nearest valid form; nothing was changed then.
std::string obey(relay& to, std::string_view line);

}  // namespace holdfast::faultproxy
