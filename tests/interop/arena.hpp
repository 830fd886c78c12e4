#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/program.hpp"

/// Real other programs and holdfast want the same lock. Each holder also takes a lock of the kernel
/// on a file. That shows whether the holder is alone, and the kernel frees it when the holder dies.
/// For permits there are as many files as permits.
namespace interop_test {

enum class shared_as : std::uint8_t { mutex, fair_mutex, shared_mutex, semaphore, expiring };

/// How many permits there are.
inline constexpr unsigned permits_of_the_arena = 3;

/// Which lock is shared, and with which program.
struct party {
  std::string title;
  std::string script;                 ///< in peers/
  std::vector<std::string> urls;      ///< several: a redlock
  std::string ports;                  ///< the same servers, as the script has them
  shared_as what = shared_as::mutex;  ///< a read-write lock: reads and writes in turns
};

/// The folder into which scripts/install-deps.sh puts the other programs.
std::string npm_packages();

struct tally {
  int sections = 0;
  int violations = 0;
};

/// The pauses of the workers. They end at once when the work is over.
class shift {
 public:
  bool over_after(std::chrono::milliseconds d) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, d, [&] { return over_; });
  }
  void end() {
    const std::lock_guard lock{mutex_};
    over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
};

/// One lock, two processes of the other program, and two threads of ours with a session each. For
/// the main thread. The constructor starts the other party's programs and does not wait for
/// them, so that the programs of many arenas start at the same time, while none works yet.
class arena {
 public:
  arena(party who, const std::string& folder);
  ~arena();
  arena(const arena&) = delete;

  /// Waits until the other party's programs are ready.
  void prepare() const;
  void begin();
  /// A third program of theirs takes the lock and is killed.
  void kill_one_of_theirs() const;
  void kill_one_of_ours() const;
  /// The results of each of the four.
  std::vector<tally> end();

  const std::string& title() const { return who_.title; }

 private:
  std::unique_ptr<harness::program> start() const;

  const party who_;
  const std::string name_;
  const std::string guard_;
  shift ours_;
  std::vector<std::unique_ptr<harness::program>> theirs_;  ///< two that work, and the victim
  std::vector<tally> tallies_{2};
  std::vector<std::thread> workers_;
};

}  // namespace interop_test
