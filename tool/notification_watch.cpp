#include "tool/notification_watch.hpp"

#include <chrono>
#include <holdfast/store/forwarding_store.hpp>
#include <optional>
#include <utility>

namespace holdfast::tool {

namespace {

/// Less than the four seconds for which a waiter stays in the queue without polling.
constexpr std::chrono::microseconds polls_after = std::chrono::seconds(3);

}  // namespace

class notification_watch::watched_inbox final : public store::inbox {
 public:
  watched_inbox(store::inbox& inner, std::shared_ptr<state> to)
      : inner_(inner), to_(std::move(to)) {}

  const std::string& peer() const noexcept override { return inner_.peer(); }
  void interrupt() noexcept override { inner_.interrupt(); }
  std::optional<std::uint64_t> gaps() const noexcept override { return inner_.gaps(); }
  void watch(std::string_view peer) override { inner_.watch(peer); }
  void unwatch(std::string_view peer) noexcept override { inner_.unwatch(peer); }

  std::optional<store::notification> receive(boot_time until) override {
    auto notification = inner_.receive(until);
    if (notification && notification->what == store::notification_kind::granted)
      to_->saw_one = true;
    return notification;
  }

 private:
  store::inbox& inner_;
  const std::shared_ptr<state> to_;
};

class notification_watch::watched_store final : public store::one_by_one {
 public:
  watched_store(std::unique_ptr<session_store> inner, std::shared_ptr<state> to)
      : one_by_one(std::move(inner)), to_(to), inbox_(this->inner().inbox(), std::move(to)) {}

  store::inbox& inbox() noexcept override { return inbox_; }

  result<store::permits_reply> permits(std::string_view name,
                                       const store::permits_command& c) override {
    auto reply = one_by_one::permits(name, c);
    if (reply && reply->outcome == store::permits_outcome::queued) {
      reply->retry_after_us = polls_after.count();
      to_->waits_since = boot_clock::now();
    }
    return reply;
  }

 private:
  const std::shared_ptr<state> to_;
  watched_inbox inbox_;
};

decltype(session_options::decorate) notification_watch::decorator() const {
  return [to = state_](std::unique_ptr<store::session_store> inner) {
    return std::make_unique<watched_store>(std::move(inner), to);
  };
}

}  // namespace holdfast::tool
