#pragma once

#include <pthread.h>

#include <chrono>
#include <holdfast/result.hpp>
#include <string>

#include "store/sqlite/database_path.hpp"

namespace holdfast::store::sqlite {

/// SQLite makes writers wait by sleeping 1 to 100 ms and looking again. This queue before the door
/// wakes the next one at once: a robust mutex in a small file that all processes map.
///
/// It only decides which writer tries first. The lock that counts is SQLite's own, so a writer
/// queue that is lost, damaged or given up after a time-out costs time and nothing else.
class writer_queue {
 public:
  /// `draft` is a file name that nobody else uses, for making the file.
  static result<writer_queue> open(const sidecar& beside, const std::string& draft);
  writer_queue(writer_queue&& other) noexcept;
  writer_queue& operator=(writer_queue&& other) noexcept;
  ~writer_queue();

  /// The turn of one thread: from enter() to the end of its life.
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

  /// Waits for its turn, at most so long. A process that died inside has left.
  turn enter(std::chrono::nanoseconds at_most) noexcept;

 private:
  struct shared;
  explicit writer_queue(shared* mapped) noexcept : mapped_(mapped) {}
  shared* mapped_ = nullptr;
};

}  // namespace holdfast::store::sqlite
