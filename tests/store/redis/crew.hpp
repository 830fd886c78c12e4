#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/eventually.hpp"

namespace redis_test {

/// Threads of several sessions that lock, work under the lock and unlock, over and over, on a few
/// names, whatever the servers do meanwhile. Their resource refuses older fences, as users are
/// advised, and counts in two steps: two threads inside at once lose a count.
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

  /// Blocks until every thread has had the lock this many times more: nobody is stuck.
  void all_go_on(int times) {
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
    long failed = 0;       ///< calls that threw: the servers were away for longer than they may
    long refused = 0;      ///< steps that the resource refused: overtaken by a newer holder
    long overlaps = 0;     ///< two threads that believed at the same time that they had the lock
    long same_fence = 0;   ///< grants with a fence that another grant had
    long lost_counts = 0;  ///< at the resource, by two threads that it admitted at once
    std::string failure;   ///< the first error
    friend std::ostream& operator<<(std::ostream& out, const totals& t) {
      return out << "acquired " << t.acquired << ", failed " << t.failed << ", overlaps "
                 << t.overlaps << ", refused by the resource " << t.refused;
    }
  };
  totals count() {
    const std::lock_guard guard{mutex_};
    totals all = totals_;
    for (auto& [name, r] : resources_) {
      const std::lock_guard of_resource{r.mutex};
      all.same_fence += r.same_fence;
      all.overlaps += r.overlaps;
      all.refused += r.refused;
      all.lost_counts += r.written - r.counter;
    }
    return all;
  }

 private:
  struct resource {
    std::mutex mutex;
    std::set<std::uint64_t> fences;
    long counter = 0;
    long written = 0;
    int inside = 0;
    long overlaps = 0, refused = 0, same_fence = 0;

    bool lets_in(std::uint64_t fence) {
      if (fence >= *fences.rbegin()) return true;
      ++refused;
      return false;
    }
    std::optional<long> read(std::uint64_t fence) {
      const std::lock_guard guard{mutex};
      if (++inside > 1) ++overlaps;
      if (!fences.insert(fence).second) ++same_fence;
      return lets_in(fence) ? std::optional(counter) : std::nullopt;
    }
    void write(std::uint64_t fence, std::optional<long> value) {
      const std::lock_guard guard{mutex};
      --inside;
      if (!value || !lets_in(fence)) return;
      counter = *value;
      ++written;
    }
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
        const std::lock_guard guard{mutex_};
        ++totals_.acquired;
      } catch (const holdfast::error& e) {
        const std::lock_guard guard{mutex_};
        ++totals_.failed;
        if (totals_.failure.empty()) totals_.failure = e.what();
      }
    }
  }

  static void use(resource& r, std::uint64_t fence) {
    auto value = r.read(fence);
    std::this_thread::yield();
    if (value) ++*value;
    r.write(fence, value);
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

/// Must hold whatever was lost: at a resource that checks the fence, no work is lost.
inline void expect_right_data(const crew::totals& t) {
  EXPECT_EQ(t.same_fence, 0);
  EXPECT_EQ(t.lost_counts, 0);
  std::cout << t << '\n';
}

/// Must hold where nothing was lost.
inline void expect_one_at_a_time(const crew::totals& t) {
  expect_right_data(t);
  EXPECT_EQ(t.overlaps, 0);
  EXPECT_EQ(t.refused, 0);
}

}  // namespace redis_test
