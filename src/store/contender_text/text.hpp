#pragma once

#include <chrono>
#include <holdfast/store/contender_store.hpp>
#include <optional>
#include <string>
#include <string_view>

/// The text of an entry, for the stores whose entries have names and data. All of them use the same
/// text.
///
///     hf1.m.1.1.0123456789abcdef0123456789abcdef+
///         │ │ │ └ owner id                      └ the second entry of an owner that upgrades
///         │ │ └ weight
///         │ └ capacity
///         └ kind: m, s, p (permits), l (a waiter at a latch), e (election)
namespace holdfast::store::contender_text {

/// The capabilities that these stores have in common.
capabilities promises(std::chrono::milliseconds command_timeout) noexcept;

std::string to_text(const contender& who);
/// Nothing if the text is not in the form of to_text(); `place` is left empty.
std::optional<contender> parse_contender(std::string_view text);

/// The data of other programs begin differently.
bool is_ours(std::string_view data) noexcept;

std::string write(const contender_data& says);
/// Data that another program wrote becomes the note.
contender_data read_contender_data(std::string_view data);

/// `%XX` for each byte.
void append_escaped(std::string& to, std::string_view bytes);
/// Empty if the text was not escaped in this way.
std::string unescape(std::string_view part);

}  // namespace holdfast::store::contender_text
