#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
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
/// held or suspect ──the store says it is somebody else's──▶ lost
/// held or suspect ──release()──▶ released
enum class lease_state { held, suspect, lost, released };
std::string_view to_string(lease_state s) noexcept;

/// What an acquisition gives: the proof of holding, and the means to find out when it ends.
/// Move-only; the destructor releases. Thread-safe, except for moving, destroying and release().
/// A lease may be passed to another thread: ownership belongs to this object, not to a thread.
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

  /// A number greater than that of every earlier holder of this name, on this store: pass it on
  /// to the resource, which refuses smaller ones. 0 if empty, and where the store has none
  /// (docs/guarantees.md says where it may not grow). No round trip.
  std::uint64_t fence() const noexcept;

  /// Stops when the lease is lost: before the store can give the lock to somebody else, also if the
  /// store is away; after a force_release at the next renewal, after a pause of the process as soon
  /// as its threads run. Not by release(), unless that finds out that the lease had ended.
  /// Callbacks run on a thread of the session, or on the one whose call finds it out, and must not
  /// block, because the session's thread reports the losses of other leases as well. No round trip.
  std::stop_token lost() const;

  /// No round trip; judged by the clock at the moment of the call.
  lease_state state() const noexcept;

  /// How much longer it is certainly held without another renewal: zero if lost. No round trip.
  std::chrono::nanoseconds remaining() const noexcept;

  /// Throws errc::lost unless the state is held or suspect. Cheap enough for inner loops.
  void check() const;

  /// Renews now, for the lease it was taken with, or from now on for `lease`. One round trip.
  /// Throws errc::lost if it is gone, errc::unavailable if the store is away (then the old lease
  /// still runs, or the new one if that is shorter and may have been granted),
  /// errc::invalid_argument for a length outside [min_lease, max_lease].
  void extend();
  void extend(std::chrono::milliseconds lease);

  /// Releases the lock. Returns no error; errc::lost if the lease had ended before (no other holder
  /// is affected); errc::unavailable if the store could not be reached (then the lease ends by
  /// itself). Empty afterwards in every case. One round trip.
  std::error_code release() noexcept;

  /// The name as the store knows it (with the session's prefix).
  const std::string& name() const noexcept;

  /// The first 8 of the 32 digits that name this acquisition in the store, for logs and people.
  std::string short_id() const;

 private:
  friend class engine::hold;
  friend class multi_lease;
  explicit lease(std::shared_ptr<engine::hold> hold) noexcept;
  std::shared_ptr<engine::hold> hold_;
};

}  // namespace holdfast
