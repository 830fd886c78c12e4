#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "lease/hold.hpp"
#include "session/waker.hpp"

namespace holdfast::engine {

/// The readers of one process and one name share one hold at the store. The first reader asks for
/// it, the readers that wait for its answer have the hold from the same moment, later readers join
/// while it is held, and the last one releases it. If the asking reader gives up, the next waiting
/// reader asks. When a writer waits, in this process or (as a notification reports) in another
/// session, later readers do not join any more: the next reader asks for a new hold, behind the
/// writer. Thread-safe.
class reader_group {
 public:
  /// False if the lock's options limit a hold, so that each reader needs its own.
  static bool shares(const lock_config& s) noexcept;

  /// A reader's attempt to enter, step by step. `who` is woken when look() may have a new result.
  class visit {
   public:
    visit(std::shared_ptr<reader_group> at, waker& who) : at_(std::move(at)), who_(who) {}
    ~visit() { leave(); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

    enum class way { joined, asks, waits, overloaded };
    /// To be called on arrival, after each wake-up, and at the deadline, after which it may not
    /// wait.
    way look(const lock_config& s, bool passes_writers, bool may_wait);
    /// Whether the asking reader has admitted this one while it waited, and the hold was not lost
    /// since.
    bool is_in() noexcept;
    std::shared_ptr<hold> take_joined() noexcept { return std::move(joined_); }
    /// Passes the acquired hold to the waiting readers as well: they have it from now on, though
    /// they may wake much later.
    void share(const std::shared_ptr<hold>& won);
    /// Stops waiting, or gives up its turn to ask.
    void leave() noexcept;

   private:
    friend reader_group;
    const std::shared_ptr<reader_group> at_;
    waker& who_;
    const lock_config* wants_ = nullptr;
    std::uint64_t number_ = 0;  ///< in the order in which readers and writers arrived
    std::shared_ptr<hold> joined_;
    bool asks_for_all_ = false;
  };

  /// Marks that a writer of this process waits, as long as this object lives.
  class writer {
   public:
    explicit writer(reader_group& at);
    ~writer();
    writer(const writer&) = delete;
    writer& operator=(const writer&) = delete;

   private:
    reader_group& at_;
    std::uint64_t number_;
  };

  /// Another session waits for the hold with this fence, and so for all holds that were granted
  /// earlier.
  void wanted(std::uint64_t fence);

  /// True if no other reader shares this hold; then none will join it.
  bool keep_alone(const hold& mine);

 private:
  std::shared_ptr<hold> join(const lock_config& s, bool passes_writers);
  void let_in(const std::shared_ptr<hold>& won) noexcept;
  /// Makes the first waiting reader ask, if there is one.
  void end_turn() noexcept;

  std::mutex mutex_;
  std::weak_ptr<hold> current_;
  bool asking_ = false;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, visit*> visitors_;  ///< the waiting readers
  std::set<std::uint64_t> writers_;
  std::uint64_t wanted_ = 0;  ///< the greatest fence that another session waits for
};

}  // namespace holdfast::engine
