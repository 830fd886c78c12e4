#pragma once

#include <atomic>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/history.hpp"

/// Common parts of the tests of stores with real servers.
namespace harness {

/// Returns the error that `action` throws; the test fails if there is none.
holdfast::error thrown_by(const std::function<void()>& action);

/// Threads of several sessions that acquire the lock "job" again and again, until they are stopped.
class crowd {
 public:
  explicit crowd(const std::vector<std::string>& urls);
  ~crowd();
  crowd(const crowd&) = delete;

  std::size_t holds() const;
  /// Blocks until the lock was held this many times more.
  void until_more(std::size_t by) const;
  /// Stops the threads; returns where two were inside at once, or a fence did not grow.
  std::vector<std::string> violations();

 private:
  void work(const std::string& url, std::uint32_t worker);
  void note(const holdfast::lease& held, std::uint32_t worker);
  void stop();

  std::atomic<bool> over_{false};
  std::atomic<std::uint64_t> ticks_{0};
  mutable std::mutex mutex_;
  std::vector<hold_event> history_;
  std::vector<std::thread> threads_;
};

}  // namespace harness
