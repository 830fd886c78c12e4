#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tool/options.hpp"

namespace holdfast::tool {

/// What parse() found: something to do, or a text to print (help) and nothing else to do.
struct parsed {
  std::optional<tool::command> command;
  std::string help;
};

/// From the arguments after the program's name. Throws failure_exit (64) with one line.
parsed parse(std::span<const std::string> arguments);

/// The options of a command as people write them, for suggestions and for the tests.
std::vector<std::string> option_names(const std::string& command);

}  // namespace holdfast::tool
