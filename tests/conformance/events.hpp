#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <holdfast/observer.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace conformance {

/// An observer that remembers its events, except pauses, which are those of the machine.
class events final : public holdfast::observer {
 public:
  struct one {
    holdfast::event_kind kind;
    std::string name;
    std::error_code code;
    std::uint64_t fence;
    std::chrono::nanoseconds margin;
  };

  void on_event(const holdfast::event& e) override {
    if (e.kind == holdfast::event_kind::paused) return;
    const std::lock_guard guard{mutex_};
    all_.push_back({e.kind, std::string(e.name), e.code, e.fence, e.margin});
    EXPECT_FALSE(e.store.empty());
  }

  int count(holdfast::event_kind kind) const {
    const std::lock_guard guard{mutex_};
    int n = 0;
    for (const auto& e : all_) n += e.kind == kind ? 1 : 0;
    return n;
  }
  std::vector<one> all() const {
    const std::lock_guard guard{mutex_};
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<one> all_;
};

/// An observer that throws.
class broken_observer final : public holdfast::observer {
 public:
  void on_event(const holdfast::event&) override { throw std::string("the observer is broken"); }
};

}  // namespace conformance
