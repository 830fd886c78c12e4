#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::tool {

struct command_help {
  std::string_view name;
  std::string_view usage;
  std::string_view summary;
  std::string_view json;    ///< the effect of --json here
  std::string_view footer;  ///< examples, exit codes
};

/// Precondition: the command exists.
const command_help& help_of(std::string_view command) noexcept;

/// In the order of the overview, without demo, which has a grammar of its own.
std::span<const command_help> all_commands() noexcept;

/// Whether it runs a command of the user's, which follows --.
constexpr bool runs_a_command(const command_help& c) noexcept {
  return c.usage.find(" -- CMD") != c.usage.npos;
}

/// The manual's pages, all of section 1: "holdfast", and "holdfast-run" for run.
std::vector<std::string> manual_pages();
std::string manual_page_of(const command_help& c);

/// The output of `holdfast --help`.
std::string overview();

}  // namespace holdfast::tool
