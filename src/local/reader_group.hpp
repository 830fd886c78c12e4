#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "lease/hold.hpp"
#include "session/waker.hpp"

namespace holdfast::engine {

/// The readers of one process and one name, which share one hold at the store: the first asks for
/// it, those that wait for its answer have it from the same moment, one that comes while it is held
/// joins, the last gives it back. If the one that asks gives up, the next one that waits asks. Once
/// a writer waits, here or (a notification says so) elsewhere, no reader that comes later joins
/// any more: the next reader asks for a new hold, behind the writer. Thread-safe.
class reader_group {
 public:
  /// False if a hold is its own, because of what limits it.
  static bool shares(const lock_config& s) noexcept;

  /// A reader's way in, step by step. `who` is roused when there may be news.
  class visit {
   public:
    visit(std::shared_ptr<reader_group> at, waker& who) : at_(std::move(at)), who_(who) {}
    ~visit() { leave(); }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;

    enum class way { joined, asks, waits, overloaded };
    /// When it comes, whenever it is roused, and at the deadline, from which on it may not wait.
    way look(const lock_config& s, bool passes_writers, bool may_wait);
    /// While it waited, the one that asked has let it in, and what it has is not lost since.
    bool is_in() noexcept;
    std::shared_ptr<hold> take_joined() noexcept { return std::move(joined_); }
    /// What came of asking: those that wait have it, too, though they may wake much later.
    void share(const std::shared_ptr<hold>& won);
    /// Waits no longer, or gives up its turn to ask.
    void leave() noexcept;

   private:
    friend reader_group;
    const std::shared_ptr<reader_group> at_;
    waker& who_;
    const lock_config* wants_ = nullptr;
    std::uint64_t number_ = 0;  ///< in the order in which readers and writers came
    std::shared_ptr<hold> joined_;
    bool asks_for_all_ = false;
  };

  /// A writer of this process waits, for as long as this lives.
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

  /// Another session waits for the hold that has this fence, and so for each one that was granted
  /// before it.
  void wanted(std::uint64_t fence);

  /// True if nobody else has this hold; then nobody will join it.
  bool keep_alone(const hold& mine);

 private:
  std::shared_ptr<hold> join(const lock_config& s, bool passes_writers);
  void let_in(const std::shared_ptr<hold>& won) noexcept;
  bool full(const lock_config& s) const noexcept;
  /// The first of those that wait asks now, if any does.
  void end_turn() noexcept;

  std::mutex mutex_;
  std::weak_ptr<hold> current_;
  bool asking_ = false;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, visit*> visitors_;  ///< those that wait
  std::set<std::uint64_t> writers_;
  std::uint64_t wanted_ = 0;  ///< the greatest fence for which another session waits
};

}  // namespace holdfast::engine
