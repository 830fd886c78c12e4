#pragma once

#include <stdexcept>
#include <string>

namespace holdfast::tool {

/// Ends the command: the message goes to stderr, the code to the caller.
class failure_exit : public std::runtime_error {
 public:
  failure_exit(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

}  // namespace holdfast::tool
