#pragma once

#include <cstdint>
#include <holdfast/options.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

namespace engine {
class session_impl;
}

/// A holder of a name, or a waiter. Fields that the store does not know are empty or zero; then
/// `since` is the epoch. The store knows little of a lock in the layout of another library (a
/// dialect), and with `mode=session` it does not know when a hold will end.
struct participant {
  std::string short_id;  ///< tells participants apart; is not enough to release their locks
  std::string host;
  std::uint32_t pid = 0;
  std::string program;
  std::string reason;
  std::uint32_t weight = 1;
  std::uint64_t fence = 0;                        ///< holders only
  std::chrono::system_clock::time_point since{};  ///< a label for people: the store's wall clock
  std::optional<std::chrono::milliseconds> expires_in{};  ///< how long it lasts without renewal
  bool died = false;  ///< the store sees that its process has died: the next request skips it
};

/// What the store knows about one name.
struct name_info {
  std::string name;             ///< with the session's prefix
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
  std::uint64_t tokens = 1;             ///< this many come back …
  std::chrono::microseconds per{};      ///< … in this time
  std::chrono::microseconds full_in{};  ///< if nobody takes anything
  /// The time since the last take or refund, by the store's clock. If the bucket fills all at once:
  /// the time since the interval of that take or refund began.
  std::chrono::microseconds unchanged_for{};
  std::string error{};  ///< why it could not be read: its numbers mean nothing. Usually empty
};

/// The connections to a store, and the threads that renew leases there (docs/tuning.md lists them).
/// It is a handle: copies refer to the same session, which ends when the last copy, and the last
/// primitive and lease that use it, are destroyed. Thread-safe. After fork() the child cannot use
/// it (errc::forked): open a new one there.
class session {
 public:
  /// A session over a store of your own, which holdfast::open() does not know. Throws
  /// errc::invalid_argument or errc::unsupported for options that the store cannot satisfy.
  session(std::unique_ptr<store::session_store> store, session_options options = {});

  /// What this store promises. No round trip.
  const store::capabilities& can() const noexcept;
  /// Where the locks are: the store's URL without passwords, and of its options only those that
  /// choose the place.
  const std::string& url() const noexcept;

  /// The names in use that match a pattern with `*` and `?`. Only names with the session's prefix
  /// are listed, and they are listed without it. A name whose record cannot be read is listed too;
  /// show() of it throws errc::corrupt, newer_format, foreign_data or kind_mismatch. Costs a scan
  /// of the store.
  std::vector<std::string> names(std::string_view pattern = "*") const;
  /// The holders and the waiters of a name. One round trip; two for a latch and a name not in use;
  /// on memcached one for the first 16 permits and one for each further 500, up to eleven. Throws
  /// errc::invalid_name as the primitives do.
  name_info show(std::string_view name) const;
  /// The buckets of a rate limiter that are not full, the emptiest first, at most `most`; before
  /// them those that could not be read. None if the name is in use as another kind. One round trip;
  /// on Redis a scan of the store, and one round trip for each page of keys found: at most 10,000
  /// buckets are read. Throws errc::unsupported where the store has no rate limiters.
  std::vector<rate_bucket> buckets(std::string_view name, std::size_t most = 100) const;
  /// Takes the lock away from its holders, or only from the holder with this short id (all 8 digits
  /// of it). The next waiter gets the lock with a greater fence. The former holder learns of it at
  /// its next renewal; until then the fence protects the resource. A barrier is broken as a whole,
  /// unless a short id is given. Returns how many holders were removed; for a barrier, how many
  /// participants. On Redis and memcached, throws errc::unavailable with outcome_unknown() if an
  /// answer was lost and the repeated request does not find the holder: either the first request
  /// removed the holder, or the holder released the lock. Costs the round trips of show(), and one
  /// for each holder removed (on memcached those of show(), and one); a barrier as a whole costs
  /// one more.
  std::size_t force_release(std::string_view name, std::string_view short_id = {}) const;

  /// Version, settings and state of the store's servers, or of SQLite, as far as they matter for
  /// locks. Empty for `memory:`. One or two round trips for each server.
  store::facts facts() const;

  /// How many commands were sent to the store since the session was opened.
  std::uint64_t store_operations() const noexcept;

  const std::shared_ptr<engine::session_impl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<engine::session_impl> impl_;
};

/// names(), show() and force_release() without a thread (async.hpp). These operations run one after
/// another on the session's thread, and delay its other waits. An invalid name throws
/// errc::invalid_name at once; other errors are in the result.
pending<std::vector<std::string>> async_names(const session& s, std::string pattern = "*");
pending<name_info> async_show(const session& s, std::string name);
pending<std::size_t> async_force_release(const session& s, std::string name,
                                         std::string short_id = {});

/// Opens the store that the URL names: `memory:`, `sqlite:`, `redis:` and its forms, `postgres:`,
/// `mariadb:`, `zookeeper:`, `etcd:`, `memcached:`; `file:PATH` where the URL is the first line of
/// a file, for one with a password. docs/choosing-a-store.md compares the stores, docs/stores has a
/// page for each with its options and failures, docs/errors.md lists every errc. Throws
/// errc::invalid_argument for a URL it does not understand (naming the nearest valid one),
/// errc::unsupported for a store that was not built in, and the errors that the store's page lists.
/// No message shows a secret of the URL. A store that is away (errc::unavailable) is tried again
/// for session_options::store_timeout; the observer gets one event_kind::warning. Other failures
/// are thrown at once.
session open(std::string_view url, session_options options = {});

/// The parts of a store's URL that are, or may be, secret: the password, the value of each option
/// that is not known to be harmless, and in a malformed URL the text in the place of the password.
/// In the order of the URL; views into `url`.
std::vector<std::string_view> secrets_in(std::string_view url);
/// The URL with *** in place of each of these parts, for messages.
std::string without_secrets(std::string_view url);

/// The URL of the store that open(url) opens, with its secrets. For `file:PATH` this is the URL in
/// that file. It is `url` itself if the file is a pipe (only the first reader of a pipe gets the
/// URL), or if no URL can be read from it.
std::string url_of_store(std::string_view url);

}  // namespace holdfast
