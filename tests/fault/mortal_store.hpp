#pragma once

#include <signal.h>

#include <holdfast/store/store.hpp>
#include <memory>
#include <string>
#include <utility>

namespace fault_test {

/// Where a process dies: on its way into a command, or with the answer in its hands.
struct death {
  holdfast::store::permits_verb at;
  bool answered;
};

/// A store whose process is killed at a command of the verb chosen.
class mortal_store final : public holdfast::store::session_store {
 public:
  mortal_store(std::unique_ptr<session_store> inner, death end)
      : inner_(std::move(inner)), end_(end) {}

  const holdfast::store::capabilities& can() const noexcept override { return inner_->can(); }
  const std::string& url() const noexcept override { return inner_->url(); }
  holdfast::store::inbox& inbox() noexcept override { return inner_->inbox(); }
  holdfast::result<std::vector<std::string>> names() override { return inner_->names(); }

  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    const bool here = c.verb == end_.at;
    if (here && !end_.answered) raise(SIGKILL);
    auto reply = inner_->permits(name, c);
    if (here) raise(SIGKILL);
    return reply;
  }
  holdfast::result<holdfast::store::countdown_reply> countdown(
      std::string_view name, const holdfast::store::countdown_command& c) override {
    return inner_->countdown(name, c);
  }

 private:
  std::unique_ptr<session_store> inner_;
  death end_;
};

}  // namespace fault_test
