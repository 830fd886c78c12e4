#pragma once

#include <chrono>
#include <holdfast/options.hpp>
#include <memory>
#include <optional>

namespace holdfast::tool {

/// How long the last command about a name took at the store, one round trip. For one thread.
class stopwatch {
 public:
  stopwatch();
  /// For session_options::decorate.
  decltype(session_options::decorate) decorator() const;
  /// Nothing if no command was answered since the last call.
  std::optional<std::chrono::nanoseconds> take() const;

 private:
  struct state;
  class watched_store;
  const std::shared_ptr<state> state_;
};

}  // namespace holdfast::tool
