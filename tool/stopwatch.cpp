#include "tool/stopwatch.hpp"

#include <holdfast/store/forwarding_store.hpp>
#include <mutex>
#include <utility>

namespace holdfast::tool {

struct stopwatch::state {
  std::mutex mutex;  // the session has threads of its own
  std::optional<std::chrono::nanoseconds> last;
};

class stopwatch::watched_store final : public store::forwarding_store {
 public:
  watched_store(std::unique_ptr<session_store> inner, std::shared_ptr<state> to)
      : forwarding_store(std::move(inner)), to_(std::move(to)) {}

  result<store::permits_reply> permits(std::string_view name,
                                       const store::permits_command& c) override {
    const auto began = std::chrono::steady_clock::now();
    auto reply = forwarding_store::permits(name, c);
    const auto took = std::chrono::steady_clock::now() - began;
    const std::lock_guard guard{to_->mutex};
    if (reply && c.verb == store::permits_verb::inspect) to_->last = took;
    return reply;
  }

 private:
  const std::shared_ptr<state> to_;
};

stopwatch::stopwatch() : state_(std::make_shared<state>()) {}

decltype(session_options::decorate) stopwatch::decorator() const {
  return [to = state_](std::unique_ptr<store::session_store> inner) {
    return std::make_unique<watched_store>(std::move(inner), to);
  };
}

std::optional<std::chrono::nanoseconds> stopwatch::take() const {
  const std::lock_guard guard{state_->mutex};
  return std::exchange(state_->last, std::nullopt);
}

}  // namespace holdfast::tool
