#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/held_mutexes.hpp"
#include "harness/next_wake.hpp"

/// A session over memory on a clock that stands still, whose store does as the test wants, and
/// which remembers its events. Nothing here waits for time to pass.
namespace engine_test {

using namespace std::chrono_literals;

class recorder final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    EXPECT_EQ(harness::held_mutexes(), 0) << to_string(e.kind) << ": " << e.detail;
    const std::lock_guard guard{mutex_};
    kinds_.push_back(e.kind);
    details_.emplace_back(e.detail);
    if (e.kind == holdfast::event_kind::lost) leases_lost_ += e.leases;
  }
  unsigned leases_lost() const {
    const std::lock_guard guard{mutex_};
    return leases_lost_;
  }
  std::size_t count(holdfast::event_kind kind) const {
    const std::lock_guard guard{mutex_};
    return static_cast<std::size_t>(std::count(kinds_.begin(), kinds_.end(), kind));
  }
  /// Of the last event of that kind; empty if there was none.
  std::string detail(holdfast::event_kind kind) const {
    const std::lock_guard guard{mutex_};
    std::string last;
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == kind) last = details_[i];
    return last;
  }
  void await(holdfast::event_kind kind, std::size_t times = 1) const {
    harness::eventually("event " + std::string(to_string(kind)),
                        [&] { return count(kind) >= times; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<holdfast::event_kind> kinds_;
  std::vector<std::string> details_;
  unsigned leases_lost_ = 0;
};

/// Decides what happens to commands, and can block them.
class script {
 public:
  using verb = holdfast::store::permits_verb;
  using fault = holdfast::testing::fault;

  /// From now on, for this verb.
  void set(verb v, fault f) {
    const std::lock_guard guard{mutex_};
    faults_[v] = f;
  }
  void hang(verb v) {
    const std::lock_guard guard{mutex_};
    hanging_ = true;
    hung_verb_ = v;
  }
  void let_go() {
    const std::lock_guard guard{mutex_};
    hanging_ = false;
    changed_.notify_all();
  }
  std::size_t count(verb v) {
    const std::lock_guard guard{mutex_};
    return counts_[v];
  }
  void await(verb v, std::size_t times) {
    harness::eventually("command", [&] { return count(v) >= times; });
  }
  fault choose(verb v) {
    std::unique_lock lock{mutex_};
    ++counts_[v];
    changed_.wait(lock, [&] { return !hanging_ || v != hung_verb_; });
    const auto f = faults_.find(v);
    return f == faults_.end() ? fault::none : f->second;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<verb, fault> faults_;
  std::map<verb, std::size_t> counts_;
  bool hanging_ = false;
  verb hung_verb_{};
};

/// Of a session on this clock whose store does what the script says.
inline holdfast::session_options scripted(std::shared_ptr<holdfast::clock> clock,
                                          std::shared_ptr<holdfast::observer> seen,
                                          std::shared_ptr<script> script) {
  holdfast::session_options o;
  o.clock = clock;
  o.observer = std::move(seen);
  o.lease = 30s;
  holdfast::testing::fault_plan plan;
  plan.choose = [s = std::move(script)](auto, auto, auto verb) { return s->choose(verb); };
  o.decorate = holdfast::testing::faulty(plan, std::move(clock));
  return o;
}

struct stage {
  explicit stage(const std::string& url = "memory:") : session(holdfast::open(url, options())) {}
  ~stage() { script->let_go(); }

  holdfast::session_options options() { return scripted(clock, seen, script); }
  /// Waits until this many waiters wait for the name at the store.
  void await_waiters(const std::string& name, std::size_t n) {
    harness::eventually("waiters", [&] { return session.show(name).waiters.size() >= n; });
  }
  /// Waits until a thread waits on the clock that must wake within that time.
  void await_wake_within(std::chrono::nanoseconds time) {
    harness::eventually("a wait", [&] { return clock->next_wake() <= clock->now() + time; });
  }

  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<recorder> seen = std::make_shared<recorder>();
  std::shared_ptr<engine_test::script> script = std::make_shared<engine_test::script>();
  holdfast::session session;
};

}  // namespace engine_test
