#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <holdfast/session.hpp>
#include <memory>
#include <string>
#include <utility>

namespace harness {

/// Calls `start`, once, when the library reports that it waits for a store.
class starts_what_is_waited_for final : public holdfast::observer {
 public:
  explicit starts_what_is_waited_for(std::function<void()> start) : start_(std::move(start)) {}
  ~starts_what_is_waited_for() override { EXPECT_FALSE(start_) << "nothing was waited for"; }
  void on_event(const holdfast::event& e) override {
    if (e.detail.find("waiting for the store for up to") == e.detail.npos) return;
    EXPECT_EQ(e.kind, holdfast::event_kind::warning);
    EXPECT_EQ(e.code, holdfast::errc::unavailable);
    if (auto start = std::exchange(start_, {})) start();
  }

 private:
  std::function<void()> start_;
};

/// A session on a store that is away when it is opened, and that `start` starts.
inline holdfast::session opened_before(std::function<void()> start, const std::string& url) {
  holdfast::session_options o;
  o.store_timeout = std::chrono::minutes(1);
  o.observer = std::make_shared<starts_what_is_waited_for>(std::move(start));
  return holdfast::open(url, std::move(o));
}

}  // namespace harness
