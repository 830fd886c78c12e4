#pragma once

#include <pthread.h>

#include <chrono>
#include <holdfast/result.hpp>
#include <string>

#include "store/sqlite/database_path.hpp"

namespace holdfast::store::sqlite {

/// SQLite makes writers wait by sleeping 1 to 100 ms between attempts. This queue in front of
/// SQLite wakes the next writer at once: a robust mutex in a small file that all processes map.
///
/// The queue only decides which writer tries first. The effective lock is SQLite's own, so a writer
/// queue that is lost, damaged, or given up after a time-out costs time and nothing else.
class writer_queue {
 public:
  /// `draft` is an otherwise unused file name, for creating the file.
  static result<writer_queue> open(const sidecar& beside, const std::string& draft);
  writer_queue(writer_queue&& other) noexcept;
  writer_queue& operator=(writer_queue&& other) noexcept;
  ~writer_queue();

  /// The turn of one thread: from enter() until its destruction.
  class turn {
   public:
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn();
    bool entered() const noexcept { return held_ != nullptr; }

   private:
    friend class writer_queue;
    explicit turn(pthread_mutex_t* held) noexcept : held_(held) {}
    pthread_mutex_t* held_;
  };

  /// Waits for the thread's turn, at most that long. If a process died during its turn, the turn
  /// ends.
  turn enter(std::chrono::nanoseconds at_most) noexcept;

 private:
  struct shared;
  explicit writer_queue(shared* mapped) noexcept : mapped_(mapped) {}
  shared* mapped_ = nullptr;
};

}  // namespace holdfast::store::sqlite
