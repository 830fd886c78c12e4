#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tool/fd.hpp"

namespace holdfast::tool::demo {

/// The parent's side of some forked workers: starts them, sees them die, ends them. One thread
/// only. While it lives, INT, TERM, HUP and CHLD are not delivered; next() returns them.
class workers {
 public:
  /// `body` runs in a child; it reports through `ready` and waits on `go`; it returns the exit
  /// code. `worker` is its number, from 0.
  using body = std::function<int(std::size_t worker, int ready, int go)>;

  workers(std::size_t count, body work);
  /// Kills the remaining workers, and reaps them.
  ~workers();
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  void start(std::size_t worker);
  /// Lets all ready workers begin, and every worker that starts later.
  void go() { go_.write.reset(); }
  void kill(std::size_t worker) const;
  bool any_left() const;

  struct death {
    std::size_t worker;
    int status;  ///< as from waitpid(2)
  };
  /// The first event within `at_most`.
  struct occurrence {
    std::size_t ready = 0;  ///< this many workers became ready
    std::vector<death> deaths;
    std::optional<int> signal;  ///< asks the parent to stop
  };
  occurrence next(std::chrono::milliseconds at_most);

 private:
  void be_worker(std::size_t worker, pid_t parent);
  std::vector<death> reap();
  std::size_t count_ready();

  body work_;
  std::vector<pid_t> pids_;  ///< 0: none
  pipe_ends ready_, go_;
  unique_fd signals_;
  sigset_t old_mask_{};
};

}  // namespace holdfast::tool::demo
