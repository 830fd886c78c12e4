#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tool/exit_code.hpp"

namespace holdfast::tool {

/// How much a finding of doctor matters.
enum class severity {
  ok,       ///< checked, and well
  note,     ///< a person may want to know it
  warning,  ///< costs time, or may become a problem
  problem,  ///< locks do not work, or can be lost
};

constexpr std::string_view to_string(severity s) noexcept {
  constexpr std::string_view words[]{"ok", "note", "warning", "problem"};
  return words[static_cast<int>(s)];
}

struct finding {
  severity level = severity::ok;
  std::string topic;             ///< one or two words: "round trip"
  std::string message;           ///< the fact
  std::string remedy;            ///< the remedy; empty where none is needed
  int code = exit_code::config;  ///< of a problem: the program's exit code
};
using findings = std::vector<finding>;

}  // namespace holdfast::tool
