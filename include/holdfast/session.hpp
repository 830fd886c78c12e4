#pragma once

#include <cstdint>
#include <holdfast/options.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

namespace engine {
class session_impl;
}

/// A holder of a name, or a waiter. Unknown fields are empty or zero, and an unknown `since` is the
/// epoch: locks of other libraries' programs say little.
struct participant {
  std::string short_id;  ///< enough to tell participants apart, too little to release for them
  std::string host;
  std::uint32_t pid = 0;
  std::string program;
  std::string reason;
  std::uint32_t weight = 1;
  std::uint64_t fence = 0;                        ///< holders only
  std::chrono::system_clock::time_point since{};  ///< a label for people: the store's wall clock
  std::chrono::milliseconds expires_in{};         ///< without renewal, by the store's clock
  bool died = false;  ///< the store sees that its session is gone: the next request passes it over
};

/// What the store knows about one name.
struct name_info {
  std::string name;
  std::string kind;             ///< mutex, shared_mutex, semaphore, latch, election …; else empty
  std::uint32_t capacity = 0;   ///< permits in all; a latch's starting count
  std::uint32_t remaining = 0;  ///< permits free; a latch's count now
  std::uint64_t last_fence = 0;
  std::vector<participant> holders;
  std::vector<participant> waiters;  ///< in the order in which they will be served
};

/// A bucket of a rate limit that is not full.
struct rate_bucket {
  std::string rule;                     ///< its name, or its number
  std::vector<std::string> key;         ///< the values of the key's parts, in the order of the rule
  std::uint64_t limit = 0;              ///< what it holds when it is full
  std::uint64_t remaining = 0;          ///< whole tokens
  std::uint64_t tokens = 1;             ///< so many come back …
  std::chrono::microseconds per{};      ///< … in this time
  std::chrono::microseconds full_in{};  ///< if nobody takes anything
  /// Since the last take or refund, by the store's clock. Of a bucket that fills all at once: since
  /// the beginning of the interval in which that was.
  std::chrono::microseconds unchanged_for{};
};

/// A connection to a store, and the threads that renew leases and wait for notifications on it. A
/// handle: copies mean the same session, which ends with the last copy, primitive and lease that
/// uses it. Thread-safe. After fork() it is unusable in the child (errc::forked): open a new one
/// there.
class session {
 public:
  /// Over a store that holdfast::open() does not know.
  session(std::unique_ptr<store::session_store> store, session_options options = {});

  /// What this store promises. No round trip.
  const store::capabilities& can() const noexcept;
  /// The store's URL without passwords.
  const std::string& url() const noexcept;

  /// Names in use that match a pattern with `*` and `?`; only those with the session's prefix, and
  /// without it. A name whose record cannot be read is among them; show() of it throws
  /// errc::corrupt, newer_format, foreign_data or kind_mismatch. Costs a scan of the store.
  std::vector<std::string> names(std::string_view pattern = "*") const;
  /// The holders and the waiters of a name. One round trip; two for a latch and a name not in use.
  /// Throws errc::invalid_name as the primitives do.
  name_info show(std::string_view name) const;
  /// The buckets of a rate limiter that are not full, those with the smallest part left first, at
  /// most `most`; none if the name is in use as something else. One round trip; on Redis a scan of
  /// the store, and one round trip for each page of keys found: at most 10,000 buckets are looked
  /// at. Throws errc::unsupported where the store has no rate limiters.
  std::vector<rate_bucket> buckets(std::string_view name, std::size_t most = 100) const;
  /// Takes the lock away from its holders (or only from the one with this short id, all 8 digits of
  /// it): the next waiter gets it, with a greater fence; the former holder finds out at its next
  /// renewal, and the resource refuses it by the fence. A barrier is broken as a whole, unless a
  /// short id is given. Returns how many holders were removed, at a barrier how many participants.
  /// One round trip, and one for each holder removed; one more for a barrier as a whole.
  std::size_t force_release(std::string_view name, std::string_view short_id = {}) const;

  /// What the store's servers say of themselves: version, settings, state, as far as they bear on
  /// locks. Empty where a store has nothing of the kind. A round trip or two a server.
  store::facts facts() const;

  /// Commands sent to the store since the session was opened (benchmarks and tests ask).
  std::uint64_t store_operations() const noexcept;

  const std::shared_ptr<engine::session_impl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<engine::session_impl> impl_;
};

/// names(), show() and force_release() without a thread (async.hpp): they run one after another on
/// the session's thread, and hold up its other waits.
pending<std::vector<std::string>> async_names(const session& s, std::string pattern = "*");
pending<name_info> async_show(const session& s, std::string name);
pending<std::size_t> async_force_release(const session& s, std::string name,
                                         std::string short_id = {});

/// Opens the store that the URL names: `memory:`, `sqlite:`, `redis:` and its forms, `postgres:`,
/// `mariadb:`, `zookeeper:`, `etcd:`, `memcached:` (docs/stores has a page each); `file:PATH` where
/// the URL is the first line of a file, for one with a password. Throws errc::invalid_argument for
/// a URL it does not understand (naming the nearest valid one), errc::unsupported for a store that
/// was not built in, and what the store's page says. No message shows a secret of the URL. A store
/// that is away (errc::unavailable) is tried again for session_options::store_timeout; the observer
/// is told once (event_kind::warning). Other failures are thrown at once.
session open(std::string_view url, session_options options = {});

/// The parts of a store's URL that are secret or may be: the password, the value of an option that
/// is not known to be harmless, and whatever is in the place of a password in a malformed URL. In
/// their order; views into `url`.
std::vector<std::string_view> secrets_in(std::string_view url);
/// The URL with *** in place of each: to be shown.
std::string without_secrets(std::string_view url);

}  // namespace holdfast
