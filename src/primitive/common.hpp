#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/session.hpp>
#include <optional>
#include <string>
#include <utility>

#include "primitive/access.hpp"
#include "primitive/by_thread.hpp"
#include "wait/async_forms.hpp"

/// The primitives' common parts: checked options, and the holds of threads in the std style.
namespace holdfast::primitive {

/// The id by which people name an acquisition: 8 of its 32 digits.
std::string short_id_of(const store::owner_id& owner);

/// A holder's or waiter's note ("host pid program reason") and times, in a form for people.
participant describe(const store::owner_id& owner, std::uint32_t weight, std::string_view note,
                     std::int64_t since_wall_at, std::int64_t expires_at, std::int64_t now_at);
/// The same for a store::holder or a store::waiter.
template <class Member>
participant describe(const Member& m, std::int64_t now_at) {
  return describe(m.owner, m.weight, m.note, m.since_wall_at, m.expires_at, now_at);
}

/// A name of one kind on one session, with everything checked. Throws holdfast::error.
struct subject {
  std::shared_ptr<engine::session_impl> session;
  std::shared_ptr<const engine::lock_config> config;
  std::string_view operation;  ///< "mutex", for messages

  subject(const holdfast::session& s, std::string_view what, const std::string& name,
          const lock_options& options, store::kind kind, std::uint32_t capacity,
          bool store::capabilities::* needs, bool through_local_queue = false);
  subject(const subject&) = delete;
  /// Releases at the store what this object let linger.
  ~subject();

  /// To be called before a mutex of this process is locked: in a forked child, a mutex that another
  /// thread held stays locked. Throws errc::forked.
  void require_usable() const;
  /// Returns nothing if the wait ran out of time or was cancelled; throws any other failure.
  std::optional<lease> acquire(const engine::acquire_params& c, wait_time wait,
                               std::stop_token stop) const;
  /// Throws also if the wait was cancelled.
  lease take(const engine::acquire_params& c, wait_time wait, std::stop_token stop) const;

  /// The same for a result that another function has acquired.
  std::optional<lease> in_time(result<lease> got) const;
  lease taken(result<lease> got) const;
  /// Returns false if the wait ran out of time or was asked to stop; throws any other failure.
  bool settled(status ended) const;
  /// Sends one command, in one round trip, and returns the meaning of its reply. Throws any
  /// failure.
  template <class Meaning>
  auto ask(const store::permits_command& c, const Meaning& meaning) const {
    auto reply = session->permits(config->name, c);
    if (!reply) fail(std::move(reply.error()));
    auto found = meaning(*reply);
    if (!found) fail(std::move(found.error()));
    return std::move(*found);
  }
  /// The same without a thread.
  template <class T>
  pending<T> ask_later(const store::permits_command& c, engine::meaning<T> means) const {
    return pending<T>(std::make_shared<engine::pending_reply<T>>(session, config, operation, c,
                                                                 std::move(means)));
  }
  /// The parameters of an asynchronous form, such as async_acquire().
  engine::async_request request(wait_limit limit, std::stop_token stop,
                                const engine::acquire_params& how = {}) const;

  [[noreturn]] void fail(failure f) const;
  void report_misuse(std::string_view detail) const noexcept;
};

/// Sets the lease if the store supports its length; and shortens it to max_hold, so that the store
/// frees the lock by then, too.
status set_lease(engine::lock_config& of, std::chrono::milliseconds lease,
                 const store::capabilities& can);

/// The failure for a name that is in use as another kind.
failure in_use_as(store::kind other, std::string_view then = "choose another name");

/// The failure for an option that is set, and would have no effect.
failure without_effect(std::string_view option, std::string_view why);

/// Reports to the observer an unlock() by a thread that does not hold the lock. In a child of
/// fork(), which holds nothing, that is no misuse.
void report_misuse(engine::session_impl& session, std::string_view name, std::string_view lock_kind,
                   std::string_view detail) noexcept;

/// The lease of a thread in the std style, and how many times the thread has locked: more than once
/// only for a recursive_mutex.
struct thread_hold : lease {
  thread_hold() noexcept = default;
  thread_hold(lease held) noexcept : lease(std::move(held)), level(1) {}
  std::uint32_t level = 0;
};

/// The leases of the threads that hold one lock in the std style.
class thread_holds : public by_thread<thread_hold> {
 public:
  using by_thread::put;
  /// Stores the lease with the fence of its acquisition.
  void put(lease held);
  std::uint64_t fence() const noexcept;
  std::stop_token lost() const;
  /// Throws errc::forked, errc::not_owner or errc::lost.
  void check(const subject& of) const;
  /// This thread's hold. Throws errc::forked, or errc::not_owner if it has none.
  thread_hold& require(const subject& of) const;
};

}  // namespace holdfast::primitive
