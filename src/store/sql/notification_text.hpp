#pragma once

#include <holdfast/store/command.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::store::sql {

/// A notification on its way between processes, one line:
///     hf1 granted OWNER FENCE EXPIRES_AT NAME   (or wanted, opened)
///     hf1 passed OWNER FENCE EXPIRES_AT SECRET NAME   (granted, with a secret)
/// Empty if the notification cannot be sent in this form (a name with a line break, or too long for
/// an atomic write to a pipe): no session gets it, and the waiter polls by itself.
std::string encode(const notification& n);

/// Reads the line without its end; nothing if it is not exactly in the form of encode(). `peer`
/// stays empty.
std::optional<notification> decode(std::string_view line);

}  // namespace holdfast::store::sql
