#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tool/options.hpp"

namespace holdfast::tool {

using words = std::vector<std::string>;

/// One command's grammar. Every value is read as a word and converted after the parse, so that the
/// messages are ours. CLI11's own subcommands are not used: a lock may be called "list".
class grammar {
 public:
  virtual ~grammar() = default;
  /// Converts the words that app() has parsed; `after_dashes` is the command of run. Throws
  /// failure_exit.
  virtual tool::command convert(const std::optional<words>& after_dashes) const = 0;
  CLI::App& app() { return app_; }

 protected:
  CLI::App app_;
};

/// The grammar of a command; throws failure_exit with the nearest command if there is none.
std::unique_ptr<grammar> grammar_of(const std::string& name);

}  // namespace holdfast::tool
