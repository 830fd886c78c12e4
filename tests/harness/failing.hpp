#pragma once

#include <holdfast/error.hpp>
#include <holdfast/session.hpp>
#include <string>

namespace harness {

/// The failure of a call: the reason, and the message that a person sees.
struct failing {
  bool failed = false;
  holdfast::errc reason{};
  std::string text;
  bool retryable = false;
  bool unknown = false;  ///< whether it is unknown if the call was carried out
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

/// The failure of open() at its first attempt, without waiting for a server that is away.
inline failing outcome_of_opening(const std::string& url) {
  holdfast::session_options once;
  once.store_timeout = std::chrono::milliseconds::zero();
  return outcome_of([&] { (void)holdfast::open(url, once); });
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace harness
