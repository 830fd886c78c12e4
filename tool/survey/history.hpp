#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <holdfast/session.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The changes between one poll of a name and the next.
namespace holdfast::tool {

struct hold_change {
  enum class what { taken, given_up };
  what happened = what::taken;
  std::chrono::system_clock::time_point at{};  ///< when it was seen, or the store's time
  std::string lock;
  participant who{};
  bool waited_known = false;           ///< taken: the holder was seen in the queue before
  bool held_known = false;             ///< given up: the store knew since when it was held
  std::chrono::milliseconds length{};  ///< of that wait, or of that hold
};
std::string_view to_string(hold_change::what w) noexcept;

/// A histogram of durations.
class durations {
 public:
  /// In seconds; the last bucket has the longer ones.
  static constexpr std::array<double, 12> bounds{0.01, 0.03, 0.1, 0.3, 1,    3,
                                                 10,   30,   100, 300, 1000, 3600};
  void add(std::chrono::milliseconds length);
  std::uint64_t count() const noexcept { return count_; }
  double seconds() const noexcept { return seconds_; }
  const std::array<std::uint64_t, bounds.size() + 1>& buckets() const noexcept { return buckets_; }

 private:
  std::array<std::uint64_t, bounds.size() + 1> buckets_{};
  std::uint64_t count_ = 0;
  double seconds_ = 0;
};

/// The last changes of one store's names. Holds that began and ended between two polls were not
/// seen. Not thread-safe.
class history {
 public:
  /// Two states of one name, the later one at `now`.
  void note(const name_info& before, const name_info& after,
            std::chrono::system_clock::time_point now);

  struct of_name {
    std::vector<hold_change> changes{};  ///< the newest first, at most max_shown
    durations held{};
    durations waited{};
  };
  of_name about(std::string_view lock) const;
  /// The names that were acquired most often among the last changes, and how often.
  std::vector<std::pair<std::string, std::uint64_t>> busiest(std::size_t most) const;

  static constexpr std::size_t max_kept = 20'000;
  static constexpr std::size_t max_shown = 100;

 private:
  void keep(hold_change change);
  std::deque<hold_change> changes_;  ///< the oldest first
};

}  // namespace holdfast::tool
