#include "tool/faultproxy/stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace holdfast::faultproxy {

namespace {

// More than a socket buffer, so that latency does not become a limit of its own too early.
constexpr std::size_t most_waiting = 4 * 1024 * 1024;

// A limited connection sends in small pieces, as a slow line does.
std::size_t slice(std::size_t size, std::size_t bytes_per_second) {
  if (bytes_per_second == 0) return size;
  return std::min(size, std::max<std::size_t>(1, bytes_per_second / 100));
}

}  // namespace

bool stream::wants_to_read(const faults::one_way& f) const noexcept {
  return !ended_ && !cut_ && !f.stalled && size_ < most_waiting;
}

stream::result stream::read(int from, faults& all, way w, moment now) {
  std::array<char, 64 * 1024> buffer;
  const auto n = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return result::fine;
  const bool swallowing = all[w].swallowing;
  if (n > 0) {
    take(std::string_view(buffer.data(), static_cast<std::size_t>(n)), all, w, now);
  } else if (n == 0 || swallowing) {
    end(swallowing);
  } else {
    return result::broken;
  }
  return result::fine;
}

void stream::take(std::string_view bytes, faults& all, way w, moment now) {
  if (all[w].swallowing) {
    lost_ = true;
    return;
  }
  auto& budget = all[w].cut_after;
  if (budget) {
    cut_ = bytes.size() >= *budget;
    bytes = bytes.substr(0, *budget);
    if (cut_)
      budget.reset();
    else
      *budget -= bytes.size();
  }
  if (bytes.empty()) return;
  size_ += bytes.size();
  waiting_.push_back({now + all.latency, std::string(bytes)});
}

void stream::end(bool silently) {
  ended_ = true;
  lost_ = lost_ || silently;
}

moment stream::due(const faults::one_way& f) const noexcept {
  if (f.stalled || blocked_ || waiting_.empty()) return moment::max();
  return std::max(waiting_.front().due, next_write_);
}

stream::result stream::write(int to, const faults& all, way w, moment now) {
  blocked_ = false;
  while (due(all[w]) <= now) {
    auto& first = waiting_.front();
    const auto most = slice(first.bytes.size(), all.bytes_per_second);
    const auto n = ::send(to, first.bytes.data(), most, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      blocked_ = errno == EAGAIN || errno == EINTR;
      return blocked_ ? result::fine : result::broken;
    }
    const auto sent = static_cast<std::size_t>(n);
    size_ -= sent;
    passed_ += sent;
    first.bytes.erase(0, sent);
    if (first.bytes.empty()) waiting_.pop_front();
    if (all.bytes_per_second != 0) {
      next_write_ = now + std::chrono::microseconds(sent * 1'000'000 / all.bytes_per_second);
    }
  }
  if (ended_ && !told_ && !lost_ && waiting_.empty() && !all[w].stalled) {
    ::shutdown(to, SHUT_WR);
    told_ = true;
  }
  return result::fine;
}

}  // namespace holdfast::faultproxy
