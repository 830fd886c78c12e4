#pragma once

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// A simulated world: processes whose threads are fibers of one real thread, one virtual time, one
/// source of random numbers. Nothing in it happens by chance: the same seed gives the same run.
namespace simulation {

/// Nanoseconds of the true time, from 0.
using nanos = std::int64_t;
inline constexpr nanos microsecond = 1'000;
inline constexpr nanos millisecond = 1'000'000;
inline constexpr nanos second = 1'000'000'000;
inline constexpr nanos never = INT64_MAX;

/// Small and the same on every machine (splitmix64).
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : next() % n; }
  nanos between(nanos least, nanos most) noexcept {
    return least + static_cast<nanos>(below(static_cast<std::uint64_t>(most - least) + 1));
  }
  bool one_in(std::uint64_t n) noexcept { return n != 0 && below(n) == 0; }
  bool permille(unsigned rate) noexcept { return rate != 0 && below(1000) < rate; }

 private:
  std::uint64_t state_;
};

/// A trouble that an operation may meet while it is under way.
enum class trouble {
  lost_request,
  lost_reply,
  slow_request,
  slow_reply,
  slow_notification,
  cut,
  restart,
  data_lost,
  freeze,
  pause,
  stall,
  death_of_another,
  evicted,
  suspended,
  full,
  read_only,
  key_lost,
  clock_step
};
inline constexpr std::size_t trouble_count = 18;

/// The library checks the boot clock once a second.
inline constexpr nanos notices_sleep_within = 1'300 * millisecond;

/// One program on one machine.
struct process {
  int number = 0;
  nanos boot = 0;          ///< its clock at the true time 0
  nanos paused_until = 0;  ///< its threads do not run before this time
  nanos slept = 0;         ///< how long its machine slept, which its steady clock does not count
  bool dead = false;
  /// Since when it has run without a pause, and without a thread that was late by more than that;
  /// after a sleep, since when its timers count it.
  nanos steady_since = 0;
  int running = 0;                                 ///< threads that have not ended
  std::uint64_t commands = 0;                      ///< sent by its threads
  std::array<std::uint32_t, trouble_count> met{};  ///< how often each occurred

  void meets(trouble t) noexcept { ++met[static_cast<std::size_t>(t)]; }
};

/// How the machines schedule their threads.
struct machine_traits {
  unsigned slow_permille = 0;     ///< a thread that is due waits up to 5 ms
  unsigned stall_per_100k = 0;    ///< a thread that is due waits up to 700 ms
  unsigned preempt_permille = 0;  ///< a thread is interrupted where it locks or unlocks a mutex
  unsigned spurious_permille = 0;
};

/// A simulated thread. Its address is its pthread_t; both are reused, as real ones are.
struct fiber {
  enum class state { ready, running, blocked, over };

  process* of = nullptr;
  std::string name;
  std::function<void()> work;
  state now = state::ready;
  std::uint64_t generation = 0;  ///< grows with each wake, so that older time-outs are ignored
  bool timed_out = false;
  nanos slept_before = 0;  ///< the process's `slept` when the wait began
  bool outlives_session = false;
  fiber* joiner = nullptr;
  fiber* next_waiting = nullptr;  ///< for a mutex, condition variable or futex
  const void* waits_for = nullptr;
  bool sleeps = false;  ///< at a condition variable, and not woken yet

  std::unique_ptr<std::byte[]> own_stack;
  std::byte* stack = nullptr;
  std::size_t stack_bytes = 0;
  std::jmp_buf at{};
  bool begun = false;
  std::uint64_t commands = 0;  ///< the number of commands that it has sent
  std::vector<std::byte> thread_locals;
  std::vector<std::pair<void (*)(void*), void*>> at_thread_exit;
  void* exceptions[2] = {};
  int error_number = 0;

  void* calls[24] = {};  ///< where it waits, if world::keep_stacks() was called
  int calls_count = 0;
};

class world {
 public:
  world(std::uint64_t seed, const machine_traits& machine);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// The running world; null outside of run().
  static world* running() noexcept;
  /// The calling fiber; null in an event, and outside of run().
  static fiber* self() noexcept;

  nanos now() const noexcept { return now_; }
  random_source& random() noexcept { return random_; }
  std::uint64_t switches() const noexcept { return switches_; }

  process& add_process();
  fiber& start(process& of, std::string name, std::function<void()> work);
  /// Calls `event` at that time, outside of all fibers: it must not wait.
  void at(nanos when, std::function<void()> event);

  /// Runs until nothing is left to do, at most until that time. True if all threads have ended.
  bool run(nanos until);
  /// Ends run() after the present step.
  void stop() noexcept { stopped_ = true; }
  bool stopped() const noexcept { return stopped_; }

  // ---- for fibers
  //
  // Blocks until wake(), or until that time: then false. `until` may be in the past.
  bool block(nanos until, const void* for_what = nullptr);
  void wake(fiber& f);
  void sleep(nanos length) {
    const nanos until = now_ + length;
    while (block(until)) {
    }
  }
  void yield();
  void preempt_sometimes();
  bool wakes_without_reason() { return random_.permille(machine_.spurious_permille); }
  /// From now on each fiber that blocks records its stack.
  void keep_stacks() noexcept { keeps_stacks_ = true; }
  /// The functions, the innermost first.
  static std::string stack_of(const fiber& f);

  /// Reading a clock advances the time, so that no thread polls it for ever.
  void tick() noexcept { now_ += 50; }

  // ---- faults
  void pause(process& p, nanos until);
  /// The machine of the process sleeps: the boot clock goes on, and the clock of its threads'
  /// time-outs stops.
  void suspend(process& p, nanos until);
  void kill(process& p);

  std::vector<const fiber*> not_over() const;

 private:
  struct event {
    nanos when;
    std::uint64_t order;
    fiber* who;
    std::uint64_t generation;
    std::size_t call;
    bool operator<(const event& other) const noexcept {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  void schedule(fiber& f, nanos when);
  nanos latency(process& p, nanos from);
  void resume(fiber& f);
  void leave(fiber& f);
  void swap_thread(fiber& f);
  void end(fiber& f);
  static void enter();

  random_source random_;
  machine_traits machine_;
  nanos now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t switches_ = 0;
  bool stopped_ = false;
  bool keeps_stacks_ = false;
  std::vector<event> queue_;
  std::vector<std::function<void()>> calls_;
  std::vector<std::size_t> free_calls_;
  std::vector<std::unique_ptr<process>> processes_;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<fiber*> free_fibers_;
  std::vector<std::byte> main_locals_;
  std::jmp_buf main_{};
  fiber* self_ = nullptr;
};

}  // namespace simulation
