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

/// How long to wait for the network, and an eventfd that ends the wait as well, or -1.
struct patience {
  boot_time until = forever;
  int wake_fd = -1;
};

/// A connected stream of bytes: plain or TLS. One thread may read while another writes.
class transport {
 public:
  virtual ~transport() = default;
  /// With `wait` it may block until bytes arrive, but for at most a tenth of a second (`again`).
  virtual io_result read(std::span<char> into, bool wait) = 0;
  /// Never blocks.
  virtual io_result write(std::string_view bytes) = 0;
  /// True if bytes are buffered here that poll() does not report.
  virtual bool pending() const { return false; }
  virtual int fd() const noexcept = 0;
  /// Ends every current and future read() and write(). From any thread.
  virtual void shut_down() noexcept = 0;
  /// Describes the last failure.
  virtual std::string problem() const = 0;
};

/// Connects, with the TLS handshake if the URL demands TLS. Fails with errc::unavailable, or with
/// the problem of the certificates.
result<std::unique_ptr<transport>> connect(const redis_options& options, const patience& p);

/// Waits until `fd` is ready for `events` (as in poll). Returns false if the time is up or the
/// thread was woken.
bool wait_ready(int fd, short events, const patience& p);

/// Writes all bytes, waiting as long as `p` allows.
io write_all(transport& to, std::string_view bytes, const patience& p);

/// Starts TLS over a connected socket, which it owns from now on, even if it fails.
result<std::unique_ptr<transport>> start_tls(int fd, const redis_options& options,
                                             const patience& p);

}  // namespace holdfast::store::redis
