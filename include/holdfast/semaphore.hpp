#pragma once

#include <cstdint>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast {

/// `capacity` permits by name. A permit is owned and leased: a crash gives it back. An acquisition
/// takes `weight` permits or none. Requests are served in order of arrival: a large one holds up
/// the smaller ones behind it. Thread-safe. Errors and costs as mutex; errc::capacity_mismatch if
/// the name is in use with another capacity; errc::invalid_argument for a weight of 0 or above the
/// capacity.
class semaphore {
 public:
  /// Capacity from 1 to 2^30. No round trip.
  semaphore(session s, std::string name, std::uint32_t capacity, lock_options options = {});
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;
  ~semaphore();

  lease acquire(std::uint32_t weight = 1, std::stop_token stop = {});
  [[nodiscard]] std::optional<lease> try_acquire(std::uint32_t weight = 1) {
    return acquire_within(weight, one_try, {});
  }
  [[nodiscard]] std::optional<lease> try_acquire_for(any_duration timeout, std::uint32_t weight = 1,
                                                     std::stop_token stop = {}) {
    return acquire_within(weight, timeout.wait, std::move(stop));
  }
  [[nodiscard]] std::optional<lease> try_acquire_until(any_time_point t, std::uint32_t weight = 1,
                                                       std::stop_token stop = {}) {
    return acquire_within(weight, t.wait, std::move(stop));
  }

  /// The number of free permits at this moment. One round trip; the answer is stale when it
  /// returns.
  std::uint32_t available() const;
  std::uint32_t capacity() const noexcept;
  const std::string& name() const noexcept;

 private:
  friend struct detail::access;
  std::optional<lease> acquire_within(std::uint32_t weight, wait_time wait, std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

/// A semaphore with the interface of std::counting_semaphore. The object keeps the permits that it
/// acquired, and release() gives some of them back. Thread-safe. Errors and costs as semaphore.
class counting_semaphore {
 public:
  /// Capacity: 1 to 2^30; on memcached at most capabilities::max_slots, else errc::unsupported. No
  /// round trip.
  counting_semaphore(session s, std::string name, std::uint32_t capacity,
                     lock_options options = {});
  /// Releases the permits that are left.
  ~counting_semaphore();

  void acquire();
  [[nodiscard]] bool try_acquire() { return acquire_within(one_try); }
  [[nodiscard]] bool try_acquire_for(any_duration timeout) { return acquire_within(timeout.wait); }
  [[nodiscard]] bool try_acquire_until(any_time_point t) { return acquire_within(t.wait); }
  /// Throws errc::not_owner, and releases nothing, if the object has fewer permits: a release
  /// cannot create any. A failure at the store is reported to the observer. One round trip for each
  /// permit.
  void release(std::uint32_t permits = 1);
  std::uint32_t max() const noexcept;

 private:
  bool acquire_within(wait_time wait);
  struct state;
  std::unique_ptr<state> state_;
};

/// A permit that ends by itself unless it is extended. Other threads, processes and machines that
/// get its id can extend or release it: any program that knows the id owns the permit.
///
/// By the store's clock, a permit ends `lease` after the store has granted or extended it. A
/// program that must not act on an ended permit counts from before its call, and stops 2 ms and 1 %
/// of `lease` earlier. That is the margin of every lease: clocks run at different rates, and an SQL
/// store may date a permit up to 1.5 ms back.
struct permit {
  std::string id;  ///< 32 hexadecimal digits from 128 random bits: a secret
  std::uint64_t fence = 0;
  std::chrono::milliseconds lease{};
};

/// Permits for work that is passed on to other processes: each has an id and a lease, and is not
/// renewed. An expiring_semaphore and a semaphore with the same name and capacity share their
/// permits. Thread-safe. Errors and costs as semaphore; errc::invalid_argument for a lease outside
/// [min_lease, max_lease], and for a malformed id.
class expiring_semaphore {
 public:
  /// The only option is `reason`; others are errc::invalid_argument.
  expiring_semaphore(session s, std::string name, std::uint32_t capacity,
                     lock_options options = {});
  expiring_semaphore(const expiring_semaphore&) = delete;
  expiring_semaphore& operator=(const expiring_semaphore&) = delete;
  ~expiring_semaphore();

  permit acquire(std::chrono::milliseconds lease, std::stop_token stop = {});
  [[nodiscard]] std::optional<permit> try_acquire(std::chrono::milliseconds lease) {
    return acquire_within(lease, one_try, {});
  }
  [[nodiscard]] std::optional<permit> try_acquire_for(std::chrono::milliseconds lease,
                                                      any_duration timeout,
                                                      std::stop_token stop = {}) {
    return acquire_within(lease, timeout.wait, std::move(stop));
  }
  [[nodiscard]] std::optional<permit> try_acquire_until(std::chrono::milliseconds lease,
                                                        any_time_point t,
                                                        std::stop_token stop = {}) {
    return acquire_within(lease, t.wait, std::move(stop));
  }

  /// The permit lasts `lease` from now on. False if it has ended. One round trip.
  [[nodiscard]] bool try_extend(std::string_view id, std::chrono::milliseconds lease);
  /// False if the permit had ended; no other holder is affected. One round trip.
  bool release(std::string_view id);

  /// As semaphore::available().
  std::uint32_t available() const;
  std::uint32_t capacity() const noexcept;
  const std::string& name() const noexcept;

 private:
  friend struct detail::access;
  std::optional<permit> acquire_within(std::chrono::milliseconds lease, wait_time wait,
                                       std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

/// try_extend() and release() without a thread (async.hpp). One round trip, shared with the other
/// requests of the session. Throw errc::invalid_argument for an impossible id or lease.
pending<bool> async_extend(expiring_semaphore& of, std::string_view id,
                           std::chrono::milliseconds lease);
pending<bool> async_release(expiring_semaphore& of, std::string_view id);

/// available() without a thread. One round trip, shared with the other requests of the session.
pending<std::uint32_t> async_available(const semaphore& of);
pending<std::uint32_t> async_available(const expiring_semaphore& of);

}  // namespace holdfast
