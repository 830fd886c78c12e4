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

/// A long answer that is made once for all its requests. No request gets an answer that lacks a
/// change made before the request: one that comes soon after a change waits until another answer
/// may be made. Thread-safe.
class shared_answer {
 public:
  struct document {
    std::shared_ptr<const std::string> text{};
    std::chrono::system_clock::time_point as_of{};  ///< the time of the oldest poll in it
  };
  /// Whether an older document is good enough for a request.
  using judge = std::function<bool(const document&)>;
  using receiver = std::function<void(const document&)>;

  /// `version` must change whenever `make` would make another document of the same moment.
  shared_answer(std::function<std::uint64_t()> version, std::function<document()> make,
                std::function<boot_time()> now = boot_clock::now)
      : version_(std::move(version)), make_(std::move(make)), now_(std::move(now)) {}

  /// Calls `then`, at once or later. If it returns a time, call tell() after that time.
  std::optional<std::chrono::nanoseconds> ask(const judge& is_good, receiver then);
  /// Makes a document for the waiting requests.
  void tell();

  /// The pause from one document to the next, while there are changes. It is longer after a
  /// document that took long: at most a fifth of the time goes into making them.
  static constexpr std::chrono::milliseconds least_pause{200};
  /// How long a document is used while nothing changes, or for that pause if it is longer.
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
