#pragma once

#include <condition_variable>
#include <deque>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

namespace holdfast::engine {

class acquisition;

/// The queue of one process for one name: one of its threads represents it at the store, the
/// others wait here, in order. Who leaves takes the next one along: giving the lock back and
/// queueing for the next of this process are one step at the store. Thread-safe.
class gate {
 public:
  explicit gate(clock& on) : clock_(on) {}

  /// Where a thread stands that wants in.
  enum class entry {
    first,      ///< it represents the process now: ask the store
    asked,      ///< it does, and the one before has asked the store for it: see the acquisition
    timed_out,
    cancelled,
  };
  entry enter(acquisition& who, boot_time deadline, std::stop_token stop);

  /// The representative goes. The next in line becomes it, and asks for itself.
  void leave();

  /// The representative has somebody it can ask for; null if nobody is in line. Until hand_to() the
  /// one in line waits for that, whatever its deadline.
  acquisition* take_next();
  void hand_to(acquisition& next);

  /// How many stand in line.
  std::size_t waiting();

 private:
  friend class acquisition;
  clock& clock_;
  std::mutex mutex_;
  bool occupied_ = false;
  std::deque<acquisition*> line_;
};

/// The representative's place at a gate (or at none), which it leaves whatever happens.
class gate_place {
 public:
  explicit gate_place(gate* at) noexcept : gate_(at) {}
  ~gate_place() {
    if (gate_ != nullptr) gate_->leave();
  }
  gate_place(const gate_place&) = delete;
  gate_place& operator=(const gate_place&) = delete;

  acquisition* take_next() { return gate_ == nullptr ? nullptr : gate_->take_next(); }
  void hand_to(acquisition& next) { std::exchange(gate_, nullptr)->hand_to(next); }
  void keep() noexcept { gate_ = nullptr; }

 private:
  gate* gate_;
};

/// The gates of a session, by name. A gate lives while somebody uses it.
class gate_list {
 public:
  std::shared_ptr<gate> at(const std::string& name, clock& on);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<gate>> gates_;
  std::size_t sweep_at_ = 64;
};

}  // namespace holdfast::engine
