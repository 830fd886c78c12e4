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
/// only. While it lives, INT, TERM, HUP and CHLD are not delivered but asked for with next().
class workers {
 public:
  /// `body` runs in a child, with where to say "ready" and what to read "go" from; it returns the
  /// exit code. `worker` is its number, from 0.
  using body = std::function<int(std::size_t worker, int ready, int go)>;

  workers(std::size_t count, body work);
  /// Kills who is left, and reaps them.
  ~workers();
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  void start(std::size_t worker);
  /// Lets all who are ready begin, and everybody who starts later.
  void go() { go_.write.reset(); }
  void kill(std::size_t worker) const;
  bool any_left() const;

  struct death {
    std::size_t worker;
    int status;  ///< as from waitpid(2)
  };
  /// What happened first within `at_most`.
  struct occurrence {
    std::size_t ready = 0;  ///< so many workers became ready
    std::vector<death> deaths;
    std::optional<int> signal;  ///< the parent is asked to stop
  };
  occurrence next(std::chrono::milliseconds at_most);

 private:
  void be_worker(std::size_t worker, pid_t parent);
  std::vector<death> reap();
  std::size_t count_ready();

  body work_;
  std::vector<pid_t> pids_;  ///< 0: not there
  pipe_ends ready_, go_;
  unique_fd signals_;
  sigset_t old_mask_{};
};

}  // namespace holdfast::tool::demo
