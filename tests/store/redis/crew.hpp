#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <holdfast/holdfast.hpp>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/eventually.hpp"

namespace redis_test {

/// Threads of several sessions that lock, work under the lock and let go, over and over, on a few
/// names, whatever the servers do meanwhile. Each write under a lock goes to a resource that
/// refuses older fences, as users are told to have one.
class crew {
 public:
  crew(const std::string& url, int sessions, int threads_each, std::vector<std::string> names)
      : names_(std::move(names)) {
    for (const auto& n : names_) resources_[n];
    for (int i = 0; i < sessions; ++i) {
      holdfast::session_options o;
      o.lease = std::chrono::seconds(2);
      sessions_.push_back(holdfast::open(url, o));
    }
    for (int t = 0; t < sessions * threads_each; ++t) {
      done_.emplace_back(0);
      threads_.emplace_back([this, t] { work(static_cast<std::size_t>(t)); });
    }
  }
  ~crew() { stop(); }

  void stop() {
    stopping_ = true;
    for (auto& t : threads_) {
      if (t.joinable()) t.join();
    }
  }

  /// Blocks until every thread has had the lock so often again: nobody is stuck.
  void everybody_goes_on(int times) {
    std::vector<long> before(done_.begin(), done_.end());
    harness::eventually("everybody to go on", [&] {
      for (std::size_t i = 0; i < done_.size(); ++i) {
        if (done_[i] < before[i] + times) return false;
      }
      return true;
    });
  }

  struct totals {
    long acquired = 0;
    long failed = 0;        ///< calls that threw: the servers were away for longer than they may
    long refused = 0;       ///< writes that the resource refused: overtaken by a newer holder
    long overlaps = 0;      ///< two inside at once
    long fence_errors = 0;  ///< a fence twice, or an older one for a later grant
    std::string failure;    ///< the first that threw
  };
  totals count() {
    const std::lock_guard guard{mutex_};
    return totals_;
  }

 private:
  struct resource {
    std::mutex mutex;
    std::uint64_t greatest = 0;
    int inside = 0;
  };

  void work(std::size_t me) {
    auto& session = sessions_[me % sessions_.size()];
    for (std::size_t i = me; !stopping_; ++i) {
      const auto& name = names_[i % names_.size()];
      holdfast::fair_mutex m{session, name};
      try {
        auto held = m.acquire();
        use(resources_.at(name), held.fence());
        done_[me] += 1;
        (void)held.release();
      } catch (const holdfast::error& e) {
        const std::lock_guard guard{mutex_};
        ++totals_.failed;
        if (totals_.failure.empty()) totals_.failure = e.what();
      }
    }
  }

  void use(resource& r, std::uint64_t fence) {
    bool alone = false, same = false, stale = false;
    {
      const std::lock_guard guard{r.mutex};
      alone = r.inside++ == 0;
      same = fence == r.greatest;
      stale = fence < r.greatest;
      r.greatest = std::max(r.greatest, fence);
    }
    std::this_thread::yield();
    const std::lock_guard guard{r.mutex};
    --r.inside;
    const std::lock_guard also{mutex_};
    ++totals_.acquired;
    totals_.overlaps += alone ? 0 : 1;
    totals_.fence_errors += same ? 1 : 0;
    totals_.refused += stale ? 1 : 0;
  }

  std::vector<std::string> names_;
  std::map<std::string, resource> resources_;
  std::vector<holdfast::session> sessions_;
  std::deque<std::atomic<long>> done_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  totals totals_;
};

}  // namespace redis_test
