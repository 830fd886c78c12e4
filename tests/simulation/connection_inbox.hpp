#pragma once

#include <holdfast/store/inbox.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "simulation/server.hpp"

namespace simulation {

/// The messages that arrive on a connection's channel for notifications.
class connection_inbox final : public holdfast::store::inbox {
 public:
  connection_inbox(server& at, world& w, std::shared_ptr<connection> by)
      : at_(at), world_(w), by_(std::move(by)) {}

  const std::string& peer() const noexcept override { return by_->peer; }
  std::optional<std::uint64_t> gaps() const noexcept override { return by_->gaps; }
  void interrupt() noexcept override {
    by_->interrupted = true;
    by_->wake_reader(world_);
  }
  std::optional<holdfast::store::notification> receive(holdfast::boot_time until) override;
  void watch(std::string_view peer) override { at_.watch(by_, peer); }
  void unwatch(std::string_view peer) noexcept override {
    const auto at = by_->watched.find(peer);
    if (at != by_->watched.end() && --at->second == 0) by_->watched.erase(at);
  }

 private:
  server& at_;
  world& world_;
  std::shared_ptr<connection> by_;
};

}  // namespace simulation
