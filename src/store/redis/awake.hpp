#pragma once

#include <algorithm>
#include <holdfast/clock.hpp>

#include "store/redis/transport.hpp"

namespace holdfast::store::redis {

/// Whether a thread stays awake for an answer. A nearby server answers sooner than a thread falls
/// asleep and wakes up again. If the server is slower, the thread stays awake less and less often.
///
/// So it does if the server runs on the thread's own processor, where it cannot answer while the
/// thread is awake. An answer that is there at once, because the server took the processor from the
/// thread, does not say that it is worth staying awake.
class awake {
 public:
  /// Calls `read`, which does not wait, until it has an answer, for at most `longest`.
  template <class Read, class Now>
  io_result wait(Read read, Now now, boot_time::duration longest) {
    if (not_before_ > 0) return --not_before_, io_result{io::again};
    io_result r = read();
    if (r.status != io::again) return r;
    const boot_time until = now() + longest;
    do {
      r = read();
      if (r.status != io::again) return in_vain_ = 0, r;
    } while (now() < until);
    in_vain_ = std::min(in_vain_ + 1, 8U);
    not_before_ = 1U << in_vain_;
    return {io::again};
  }

 private:
  unsigned in_vain_ = 0;     ///< how often in a row it stayed awake in vain
  unsigned not_before_ = 0;  ///< how many reads to skip before the next try
};

}  // namespace holdfast::store::redis
