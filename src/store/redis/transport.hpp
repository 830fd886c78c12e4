#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

enum class io { done, again, closed, failed };

struct io_result {
  io status = io::done;
  std::size_t bytes = 0;
};

/// How long to wait for the network, and what else ends the wait: an eventfd, or -1.
struct patience {
  boot_time until = forever;
  int wake_fd = -1;
};

/// A connected stream of bytes: plain or TLS. One thread may read while another writes.
class transport {
 public:
  virtual ~transport() = default;
  /// With `wait` it may block until something comes, but for a tenth of a second at most (`again`).
  virtual io_result read(std::span<char> into, bool wait) = 0;
  /// Never blocks.
  virtual io_result write(std::string_view bytes) = 0;
  /// True if bytes lie here that poll() does not see.
  virtual bool pending() const { return false; }
  virtual int fd() const noexcept = 0;
  /// Ends every read() and write() in progress, and those to come. From any thread.
  virtual void shut_down() noexcept = 0;
  /// What the last failure was.
  virtual std::string problem() const = 0;
};

/// Connects, and shakes hands if it is TLS. errc::unavailable, or what is wrong with certificates.
result<std::unique_ptr<transport>> connect(const redis_options& options, const patience& p);

/// Waits until `fd` is ready for `events` (as in poll). False if the time is up or this thread was
/// woken.
bool wait_ready(int fd, short events, const patience& p);

/// Writes all, waiting as long as it may.
io write_all(transport& to, std::string_view bytes, const patience& p);

/// TLS over a connected socket, which it owns from now on, also when it fails.
result<std::unique_ptr<transport>> start_tls(int fd, const redis_options& options,
                                             const patience& p);

}  // namespace holdfast::store::redis
