#pragma once

#include <signal.h>

#include <memory>
#include <utility>

#include "harness/passing_on.hpp"

namespace fault_test {

/// The moment of a process's death: on its way into a command, or with the answer received.
struct death {
  holdfast::store::permits_verb at;
  bool answered;
};

/// A store whose process is killed at a command of the chosen verb.
class mortal_store final : public harness::passing_on {
 public:
  mortal_store(std::unique_ptr<session_store> inner, death end)
      : passing_on(std::move(inner)), end_(end) {}

  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    const bool here = c.verb == end_.at;
    if (here && !end_.answered) raise(SIGKILL);
    auto reply = inner_->permits(name, c);
    if (here) raise(SIGKILL);
    return reply;
  }

 private:
  death end_;
};

}  // namespace fault_test
