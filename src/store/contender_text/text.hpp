#pragma once

#include <chrono>
#include <holdfast/store/contender_store.hpp>
#include <optional>
#include <string>
#include <string_view>

/// What stands at a place, for the stores whose places have names and data: the same text on all of
/// them.
///
///     hf1.m.1.1.0123456789abcdef0123456789abcdef+
///         │ │ │ └ owner id                      └ the second place of one that upgrades
///         │ │ └ weight
///         │ └ capacity
///         └ kind: m, s, p (permits), l (who waits at a latch)
namespace holdfast::store::contender_text {

/// What these stores have in common.
capabilities promises(std::chrono::milliseconds command_timeout) noexcept;

std::string to_text(const contender& who);
/// Nothing if it is not what to_text() makes; `place` is left empty.
std::optional<contender> parse_contender(std::string_view text);

/// Another program's data begin otherwise.
bool is_ours(std::string_view data) noexcept;

std::string write(const contender_data& says);
/// What others' programs wrote becomes the note.
contender_data read_contender_data(std::string_view data);

/// `%XX` for each byte.
void append_escaped(std::string& to, std::string_view bytes);
/// Empty for what was not escaped in this way.
std::string unescape(std::string_view part);

}  // namespace holdfast::store::contender_text
