#pragma once

#include <atomic>
#include <condition_variable>
#include <holdfast/clock.hpp>
#include <holdfast/store/inbox.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {

/// Where the threads of a session wait for notifications. There is one inbox, and no thread of its
/// own: one of the waiters reads it and hands each notification to its addressee. So the store
/// wakes a single waiter directly, without a second thread in between. Thread-safe.
class dispatcher {
 public:
  dispatcher(store::inbox& inbox, clock& on);
  ~dispatcher();

  /// A waiting thread, from before its first request to the store until it has finished.
  class registration {
   public:
    registration(dispatcher& room, const store::owner_id& owner);
    /// Receives what the store wants of the session: the *wanted* notifications, for all holds.
    explicit registration(dispatcher& room) : registration(room, store::owner_id{}) {}
    /// Receives for many owners: while it listens, it gets the notifications that are for none of
    /// the other registrations. Only one such registration may listen at a time.
    enum class for_many { owners };
    registration(dispatcher& room, for_many);
    ~registration();
    registration(const registration&) = delete;
    registration& operator=(const registration&) = delete;

    /// Returns a notification for this registration; nothing at `until`, or after wake(). The death
    /// of a peer that this registration watches counts as a wake().
    std::optional<store::notification> wait(boot_time until);

    void listen(bool on);
    /// wait() for a registration for many: returns all notifications that have arrived; if none,
    /// waits for the first one until `until`.
    std::vector<store::notification> collect(boot_time until);

    /// Ends this wait() or the next one. May be called from any thread.
    void wake();

    /// Wakes this registration when one of these sessions dies; replaces the earlier list.
    void watch(std::vector<std::string> peers);

   private:
    friend class dispatcher;
    bool has_news() const noexcept { return !got_.empty() || spare_; }
    dispatcher& room_;
    store::owner_id owner_;
    std::condition_variable changed_;
    std::vector<store::notification> got_;
    /// A notification for which there was no memory in got_.
    std::optional<store::notification> spare_;
    std::vector<std::string> watched_;
    bool woken_ = false;
    bool waiting_ = false;
    registration* next_ = nullptr;
    registration* previous_ = nullptr;
  };

  /// As inbox::gaps; a notification for which there was no memory counts as a gap as well.
  std::optional<std::uint64_t> gaps() const noexcept {
    const auto gaps = inbox_.gaps();
    return gaps ? std::optional(*gaps + dropped_.load(std::memory_order_relaxed)) : std::nullopt;
  }

  /// Whether there was a gap since the last time that this returned true, or since the beginning.
  bool has_new_gap() noexcept {
    const std::uint64_t now = gaps().value_or(0);
    std::uint64_t before = told_gaps_.load(std::memory_order_relaxed);
    return now > before && told_gaps_.compare_exchange_strong(before, now);
  }

  /// Watches other peers: `from` becomes `to`, or stays as it is if this throws. The registration
  /// for many receives the peers' deaths.
  void rewatch(std::vector<std::string>& from, std::vector<std::string> to);

 private:
  void put_in(registration& s);
  bool read_one(std::unique_lock<std::mutex>& lock, registration& reader, boot_time until);
  void deliver(store::notification&& n) noexcept;
  void put(registration& to, store::notification&& n) noexcept;
  void rouse(registration& s);
  void promote();

  store::inbox& inbox_;
  clock& clock_;
  int advance_id_;
  std::mutex mutex_;
  registration* registrations_ = nullptr;
  registration* reader_ = nullptr;
  registration* for_many_ = nullptr;
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> told_gaps_{gaps().value_or(0)};
};

}  // namespace holdfast::engine
