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

/// Where the threads of a session wait for notices. There is one inbox, and no thread of its own:
/// one of those who wait reads it and hands each notice to whom it is for. So a waiter that is
/// alone is woken by the store directly, without a second thread in between. Thread-safe.
class mailroom {
 public:
  mailroom(store::inbox& inbox, clock& on);
  ~mailroom();

  /// A place for one waiting thread, from before it asks the store until it is done.
  class slot {
   public:
    slot(mailroom& room, const store::owner_id& owner);
    /// For what the store wants of the session: the *wanted* notices, whichever hold they are
    /// about.
    explicit slot(mailroom& room) : slot(room, store::owner_id{}) {}
    /// For many owners: gets what is for none of the other slots, while it listens. One of them at
    /// a time.
    enum class for_many { owners };
    slot(mailroom& room, for_many);
    ~slot();
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;

    /// Returns a notice for this slot, or nothing at `until` or after wake(). A departed peer that
    /// this slot watches counts as a wake().
    std::optional<store::notice> wait(boot_time until);

    void listen(bool on);
    /// wait() for a slot for many: all that is there already, else what comes first until then.
    std::vector<store::notice> collect(boot_time until);

    /// Ends this wait() or the next one. From any thread.
    void wake();

    /// Be woken when one of these sessions dies; replaces the earlier list.
    void watch(std::vector<std::string> peers);

   private:
    friend class mailroom;
    bool has_news() const noexcept { return !got_.empty() || spare_; }
    mailroom& room_;
    store::owner_id owner_;
    std::condition_variable changed_;
    std::vector<store::notice> got_;
    std::optional<store::notice> spare_;  ///< for one that there was no memory for in got_
    std::vector<std::string> watched_;
    bool woken_ = false;
    bool waiting_ = false;
    slot* next_ = nullptr;
    slot* previous_ = nullptr;
  };

  /// As inbox::gaps; what there was no memory for is one as well.
  std::optional<std::uint64_t> gaps() const noexcept {
    const auto gaps = inbox_.gaps();
    return gaps ? std::optional(*gaps + dropped_.load(std::memory_order_relaxed)) : std::nullopt;
  }

  /// Somebody watches other peers now: `from` becomes `to`, or stays as it is if that throws. Their
  /// deaths are news for the slot for many.
  void rewatch(std::vector<std::string>& from, std::vector<std::string> to);

 private:
  void put_in(slot& s);
  bool read_one(std::unique_lock<std::mutex>& lock, slot& reader, boot_time until);
  void deliver(store::notice&& n) noexcept;
  void put(slot& to, store::notice&& n) noexcept;
  void rouse(slot& s);
  void promote();

  store::inbox& inbox_;
  clock& clock_;
  int advance_id_;
  std::mutex mutex_;
  slot* slots_ = nullptr;
  slot* reader_ = nullptr;
  slot* for_many_ = nullptr;
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace holdfast::engine
