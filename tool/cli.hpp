#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tool/options.hpp"

namespace holdfast::tool {

/// The result of parse(): a command, or a text to print (help).
struct parsed {
  std::optional<tool::command> command;
  std::string help;
};

/// Parses the arguments after the program's name. Throws failure_exit (64) with one line.
parsed parse(std::span<const std::string> arguments);

/// The options of a command as people write them, for suggestions and for the tests.
std::vector<std::string> option_names(const std::string& command);

}  // namespace holdfast::tool
