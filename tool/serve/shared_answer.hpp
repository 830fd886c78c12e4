#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <holdfast/clock.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tool {

/// A long answer that is made once for all that ask for it. Nobody gets one that lacks a change
/// made before the question: who asks soon after a change waits until another answer may be made.
/// Thread-safe.
class shared_answer {
 public:
  struct document {
    std::shared_ptr<const std::string> text{};
    std::chrono::system_clock::time_point as_of{};  ///< when the oldest look was that is in it
  };
  /// Whether a document that was made a while ago is of use to the one that asks.
  using judge = std::function<bool(const document&)>;
  using receiver = std::function<void(const document&)>;

  /// `version` is another number whenever `make` would make another document of the same moment.
  shared_answer(std::function<std::uint64_t()> version, std::function<document()> make,
                std::function<boot_time()> now = boot_clock::now)
      : version_(std::move(version)), make_(std::move(make)), now_(std::move(now)) {}

  /// Calls `then`, at once or later. If it returns a time, tell() is to be called after that.
  std::optional<std::chrono::nanoseconds> ask(const judge& is_good, receiver then);
  /// Makes a document for those that wait.
  void tell();

  /// From one document to the next, while there are changes. It is longer after one that took long:
  /// at most a fifth of the time goes into making them.
  static constexpr std::chrono::milliseconds least_pause{200};
  /// So long one is used while nothing changes, or for that pause if it is longer.
  static constexpr std::chrono::milliseconds least_use{1000};

 private:
  void make();

  const std::function<std::uint64_t()> version_;
  const std::function<document()> make_;
  const std::function<boot_time()> now_;
  std::mutex mutex_;
  std::optional<document> last_;
  std::uint64_t last_version_ = 0;
  boot_time made_at_{};
  std::chrono::nanoseconds pause_{};
  std::vector<receiver> waiting_;
};

}  // namespace holdfast::tool
