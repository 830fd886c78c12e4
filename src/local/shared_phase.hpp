#pragma once

#include <condition_variable>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <list>
#include <memory>
#include <mutex>

namespace holdfast::engine {

/// The participants of one session that wait at one barrier. One of them asks the store for all: a
/// phase that has ended for one has ended for each that had arrived in it. The fence of the one
/// that was answered tells which these are: all fences of a phase are greater than that of whoever
/// went on last when they arrived, and none is greater than that of whoever went on last when the
/// next one arrives. Thread-safe.
class shared_phase {
  struct member {
    std::uint64_t after = 0;   ///< the fence of whoever went on last when it arrived
    std::uint64_t number = 0;  ///< in the order in which they entered
    bool goes_on = false;
  };

 public:
  /// Of one participant.
  class place {
   public:
    explicit place(std::shared_ptr<shared_phase> at) : at_(std::move(at)), mine_(1) {}
    ~place() { leave(); }
    place(const place&) = delete;
    place& operator=(const place&) = delete;

    /// The store has said that it waits, and who went on last. Once for each arrival.
    void enter(std::uint64_t after) noexcept;
    void leave() noexcept;

    /// Before it asks: whether it goes on, as the answer to another one has said. Waits for an
    /// answer that is under way, no longer than `until`. If it returns false, it is to ask, and to
    /// say with one of the following what came of it.
    bool goes_on(clock& on, boot_time until);
    /// It goes on itself, with that fence.
    void ended(std::uint64_t fence) noexcept;
    void goes_on_waiting() noexcept;
    /// Whatever it was: the others ask themselves, at once.
    void failed() noexcept;

   private:
    void end_turn() noexcept;

    const std::shared_ptr<shared_phase> at_;
    std::list<member> mine_;  ///< empty while it is among the others: to enter takes no memory
    std::list<member>::iterator me_ = mine_.begin();
    std::uint64_t asks_for_ = 0;
    bool has_turn_ = false;
  };

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<member> members_;
  std::uint64_t entered_ = 0;
  std::uint64_t failures_ = 0;
  bool asking_ = false;
};

}  // namespace holdfast::engine
