#pragma once

#include <sched.h>
#include <sys/types.h>

#include <span>
#include <vector>

namespace bench {

/// On how many processors the calling thread may run.
int processors_allowed();

/// While one of these lives, the calling thread and the threads that it starts run on the first of
/// its processors only, and the servers, with their child processes, on the second. So each message
/// wakes a thread of the other processor, whatever the kernel would have chosen.
class own_processors {
 public:
  /// Throws if there is only one processor, or a server cannot be moved.
  explicit own_processors(std::span<const pid_t> servers);
  ~own_processors();
  own_processors(const own_processors&) = delete;
  own_processors& operator=(const own_processors&) = delete;

 private:
  std::vector<pid_t> servers_;
  cpu_set_t all_;
};

}  // namespace bench
