#pragma once

#include <string>
#include <string_view>

namespace holdfast::tool {

struct command_help {
  std::string_view name;
  std::string_view usage;
  std::string_view summary;
  std::string_view json;    ///< what --json does here
  std::string_view footer;  ///< examples, exit codes
};

/// Precondition: there is such a command.
const command_help& help_of(std::string_view command) noexcept;

/// What `holdfast --help` prints.
std::string overview();

}  // namespace holdfast::tool
