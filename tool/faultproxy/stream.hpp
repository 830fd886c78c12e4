#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "tool/faultproxy/faults.hpp"

namespace holdfast::faultproxy {

using moment = std::chrono::steady_clock::time_point;

/// The bytes that are on their way in one direction of one connection.
class stream {
 public:
  enum class result { fine, broken };

  bool wants_to_read(const faults::one_way& f) const noexcept;
  /// Reads from `from`. `cut`: the last bytes that may pass have been read; see finished().
  result read(int from, faults& all, way w, moment now);
  /// Passes on the bytes that are due.
  result write(int to, const faults& all, way w, moment now);

  /// When write() has work next; moment::max() if bytes must come first.
  moment due(const faults::one_way& f) const noexcept;
  bool blocked() const noexcept { return blocked_; }
  /// Both ends know that no more bytes will come.
  bool closed() const noexcept { return ended_ && told_; }
  /// The last bytes before a cut have been passed on.
  bool cut_now() const noexcept { return cut_ && waiting_.empty(); }
  bool lost_bytes() const noexcept { return lost_; }
  std::size_t waiting() const noexcept { return size_; }
  std::size_t passed() const noexcept { return passed_; }

 private:
  struct piece {
    moment due;
    std::string bytes;
  };
  void take(std::string_view bytes, faults& all, way w, moment now);
  void end(bool silently);

  std::deque<piece> waiting_;
  std::size_t size_ = 0;
  std::size_t passed_ = 0;
  moment next_write_{};
  bool ended_ = false;
  bool told_ = false;
  bool blocked_ = false;
  bool cut_ = false;
  bool lost_ = false;
};

}  // namespace holdfast::faultproxy
