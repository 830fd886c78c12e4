#pragma once

#include <holdfast/error.hpp>
#include <string>

namespace harness {

/// What a call failed with: the reason, and the message that a person sees.
struct failing {
  bool failed = false;
  holdfast::errc reason{};
  std::string text;
  bool retryable = false;
  bool unknown = false;  ///< whether it was carried out
};

template <class Call>
failing outcome_of(Call call) {
  try {
    call();
  } catch (const holdfast::error& e) {
    return {true, e.reason(), e.what(), e.retryable(), e.outcome_unknown()};
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace harness
