#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast {

namespace engine {
class hold;
}

/// held ──renewal fails or hangs──▶ suspect ──the lease is about to end──▶ lost
///   ▲──────a renewal succeeds────────┘
/// held or suspect ──the store says it is no longer held──▶ lost
/// held or suspect ──release()──▶ released
enum class lease_state { held, suspect, lost, released };
std::string_view to_string(lease_state s) noexcept;

/// The result of an acquisition: proves that you hold the lock, and tells you when you lose it.
/// Move-only; the destructor releases. Thread-safe, except for moving, destroying and release(). A
/// lease may be passed to another thread: ownership belongs to this object, not to a thread.
class [[nodiscard]] lease {
 public:
  lease() noexcept = default;  ///< holds nothing
  lease(lease&&) noexcept;
  lease& operator=(lease&&) noexcept;  ///< releases what it held before
  /// As release(), but errors go to the observer; with lock_options::unconfirmed_release it does
  /// not wait for the answer, and costs no round trip.
  ~lease();

  /// False for an empty or moved-from object. Says nothing about the state.
  explicit operator bool() const noexcept { return hold_ != nullptr; }

  /// A number greater than that of every earlier holder of this name on this store
  /// (docs/guarantees.md lists the exceptions). Pass it to the resource, which refuses smaller
  /// ones. 0 if the lease is empty, or if the store has no fences. No round trip.
  std::uint64_t fence() const noexcept;

  /// A token at which stop is requested when the lease is lost. That is before the store can give
  /// the lock to another holder, even if the store is away. Exceptions (docs/guarantees.md): after
  /// a force_release, or if the store lost the lock, stop is requested at the next renewal; after a
  /// pause of the process, as soon as its threads run. release() requests no stop, unless it finds
  /// that the lease had already ended. Callbacks run on a thread of the session, or on the thread
  /// whose call notices the loss. They must not block, because the session's thread reports the
  /// losses of other leases, too. No round trip.
  std::stop_token lost() const;

  /// The state at the moment of the call, by the clock; `released` if empty. No round trip.
  lease_state state() const noexcept;

  /// How long the lock is still certain to be held without another renewal; zero if lost. No round
  /// trip.
  std::chrono::nanoseconds remaining() const noexcept;

  /// Throws errc::lost unless the state is held or suspect, and errc::not_owner if the lease is
  /// empty. No round trip: cheap enough for inner loops.
  void check() const;

  /// Renews the lease now, with its old length, or with the length `lease` from now on. One round
  /// trip. Throws errc::lost if the lease is lost, errc::not_owner if it is empty, and
  /// errc::invalid_argument for a length outside [min_lease, max_lease]. Throws errc::unavailable
  /// if the store is away. Then the old lease still runs, or the new one if that is shorter,
  /// because the store may have granted it. A length beyond the lock's max_hold is cut to what is
  /// left of max_hold.
  void extend();
  void extend(std::chrono::milliseconds lease);

  /// Releases the lock. Returns errc::lost if the lease had ended before (no other holder is
  /// affected). Returns errc::unavailable if the store could not be reached, and errc::overloaded
  /// without memory; then the lease ends by itself. The object is empty afterwards in every case.
  /// One round trip; for an empty lease none, and no error.
  std::error_code release() noexcept;

  /// The name as the store knows it (with the session's prefix).
  const std::string& name() const noexcept;

  /// The first 8 of the 32 digits that name this acquisition in the store, for logs and people.
  std::string short_id() const;

 private:
  friend class engine::hold;
  /// As release(), but a failure contains what the store said. async_release() and the C interface
  /// call it.
  friend status release_status(lease& held) noexcept;
  explicit lease(std::shared_ptr<engine::hold> hold) noexcept;
  std::shared_ptr<engine::hold> hold_;
};

}  // namespace holdfast
