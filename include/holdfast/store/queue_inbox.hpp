#pragma once

#include <deque>
#include <holdfast/store/inbox.hpp>

namespace holdfast::store {

/// An inbox into which threads of this process put notifications, without a system call. It keeps
/// `most` of them at most, and drops the oldest: for a session whose waiters poll as well, because
/// it may be a long time before one of its threads reads the inbox.
class queue_inbox final : public inbox {
 public:
  queue_inbox(std::string peer, clock& on, std::size_t most = std::size_t(-1))
      : peer_(std::move(peer)), clock_(on), most_(most) {}

  const std::string& peer() const noexcept override { return peer_; }

  std::optional<std::uint64_t> gaps() const noexcept override { return 0; }

  std::optional<notification> receive(boot_time until) override {
    std::unique_lock lock{mutex_};
    while (queue_.empty() && !interrupted_ && clock_.now() < until) {
      clock_.wait_until(lock, changed_, until);
    }
    interrupted_ = false;
    if (queue_.empty()) return std::nullopt;
    notification first = std::move(queue_.front());
    queue_.pop_front();
    return first;
  }

  void interrupt() noexcept override {
    const std::lock_guard guard{mutex_};
    interrupted_ = true;
    changed_.notify_one();
  }

  /// Any thread may call it. It never waits for the receiving thread.
  void put(const notification& n) {
    const std::lock_guard guard{mutex_};
    if (queue_.size() >= most_) queue_.pop_front();
    queue_.push_back(n);
    changed_.notify_one();
  }

 private:
  const std::string peer_;
  clock& clock_;
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<notification> queue_;
  bool interrupted_ = false;
};

}  // namespace holdfast::store
