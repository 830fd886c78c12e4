#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Completion in shells: docs/cli.md.
namespace holdfast::tool {

/// The script for `bash`, `zsh` or `fish`, made from the grammar.
std::string completion_script(std::string_view shell);

/// A word as bash has it on its line, perhaps with an unclosed quote.
struct bash_word {
  std::string text;  ///< its meaning
  char quote = 0;    ///< ' or " if it begins with one
};
/// Nothing if the meaning depends on the shell: $, `, quotes in the middle.
std::optional<bash_word> read_bash_word(std::string_view typed);

/// The name quoted for bash, after the opening quote if there is one. Nothing if it cannot be
/// written there, or would be an option.
std::optional<std::string> bash_completion_of(const std::string& name, char quote);

}  // namespace holdfast::tool
