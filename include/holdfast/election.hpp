#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast {

struct election_options {
  /// Public: an address, for example. At most 200 bytes of UTF-8 without control characters.
  std::string note{};
  /// The waiting candidate with the greatest priority leads next; equal ones follow in order of
  /// arrival. Any value, also a negative one. A greater priority does not depose a leader.
  /// ZooKeeper and etcd have order of arrival only: any priority but 0 is errc::unsupported there.
  std::int32_t priority = 0;
  /// How long the others wait for a leader whose death the store cannot see. Zero: the session's.
  std::chrono::milliseconds lease{0};
};

/// The leader, as every program can read it.
struct leader {
  std::uint64_t term = 0;  ///< greater than that of every leader before
  std::string note;
  std::string host;
  std::uint32_t pid = 0;
  std::string program;
  std::chrono::system_clock::time_point since{};  ///< a label for people: the store's wall clock
  /// Only from observe(): leaders between the previous one and this may have been missed.
  bool after_gap = false;
};

/// The result of a successful campaign; the destructor resigns. Like a lease it is move-only, and
/// thread-safe except for moving, destroying and resign().
class [[nodiscard]] leadership {
 public:
  leadership() noexcept = default;
  explicit leadership(lease held) noexcept : held_(std::move(held)) {}
  explicit operator bool() const noexcept { return static_cast<bool>(held_); }

  /// The fence: pass it on to what you write to, which refuses smaller ones.
  std::uint64_t term() const noexcept { return held_.fence(); }
  /// A token at which stop is requested when the leadership is lost, before another candidate can
  /// lead (lease::lost() has the exceptions).
  std::stop_token lost() const { return held_.lost(); }
  lease_state state() const noexcept { return held_.state(); }
  /// Throws as lease::check(). No round trip.
  void check() const { held_.check(); }
  /// As lease::release(). One round trip; the next candidate leads.
  std::error_code resign() noexcept { return held_.release(); }
  /// The lease of the leadership, for functions that take a lease.
  lease as_lease() && noexcept { return std::move(held_); }

 private:
  lease held_;
};

/// The leaders, one after the other, with ever greater terms. Each is returned once, however short
/// its term was, because the store remembers the last 16. If an observer is further behind, or the
/// store lost its history (on Redis: a failover, an eviction, an hour without a leader), it gets
/// the oldest leader that is known, with `after_gap` set. ZooKeeper and etcd keep no history: there
/// it gets the leader at the time of the poll, and `after_gap` is set in all but the first. For one
/// thread at a time.
class leaders {
 public:
  /// The leader after the one that was returned last; the first call returns the present leader, or
  /// waits for one. The leader may have resigned by the time of the return. Throws errc::cancelled
  /// if a stop is requested. Polls about twice a second, one round trip each.
  leader next(std::stop_token stop = {});
  /// Empty if there is no other leader in time, or if a stop is requested.
  [[nodiscard]] std::optional<leader> next_for(any_duration timeout, std::stop_token stop = {}) {
    return next_within(timeout.wait, std::move(stop));
  }

 private:
  friend class election;
  friend pending<leader> async_next(leaders& of, wait_limit limit, std::stop_token stop);
  struct state;
  explicit leaders(std::shared_ptr<const state> of) : of_(std::move(of)) {}
  std::optional<leader> next_within(wait_time wait, std::stop_token stop);
  std::shared_ptr<const state> of_;
  std::optional<std::uint64_t> last_term_{};  ///< 0: nobody had led before the first poll
};

/// One of many candidates leads, until it resigns, loses its lease, or dies.
///
///     from       │ campaign                  │ resign          │ the leader dies,
///                │                           │                 │ or its lease ends
///     ───────────┼───────────────────────────┼─────────────────┼──────────────────────
///     vacant     │ the caller leads          │ –               │ –
///     led        │ the caller waits, by      │ the next leads, │ the next leads, with a
///                │ priority, then arrival    │ greater term    │ greater term
///
/// An election is a lock of a kind of its own, with the leader's note. Lease, renewal, loss and
/// costs are those of fair_mutex. Thread-safe. Errors as mutex.
class election {
 public:
  /// No round trip. Throws errc::invalid_argument for a note over the limit.
  election(session s, const std::string& name, const election_options& options = {});
  election(const election&) = delete;
  election& operator=(const election&) = delete;
  ~election();

  /// Waits until this candidate leads. Throws errc::cancelled if a stop is requested.
  leadership campaign(std::stop_token stop = {});
  [[nodiscard]] std::optional<leadership> try_campaign() { return campaign_within(one_try, {}); }
  [[nodiscard]] std::optional<leadership> campaign_for(any_duration timeout,
                                                       std::stop_token stop = {}) {
    return campaign_within(timeout.wait, std::move(stop));
  }
  [[nodiscard]] std::optional<leadership> campaign_until(any_time_point t,
                                                         std::stop_token stop = {}) {
    return campaign_within(t.wait, std::move(stop));
  }

  /// The present leader, if there is one. One round trip.
  std::optional<leader> current() const;
  /// The stream of leaders, which may outlive this object.
  leaders observe() const;

  /// Campaigns, and calls `work` while it leads, with a token at which stop is requested when the
  /// leadership is lost or `stop` is requested. If the leadership was lost, campaigns again after
  /// `work` has returned. Returns if `work` returned while it still led, or if a stop was
  /// requested. If `work` throws, resigns, and passes the exception on.
  template <std::invocable<std::stop_token, const leadership&> F>
  void on_leader(F work, std::stop_token stop = {}) {
    while (!stop.stop_requested()) {
      auto mine = campaign_within(no_limit, stop);
      if (!mine) return;
      std::stop_source end;
      const auto asks = [&] { end.request_stop(); };
      const std::stop_callback on_loss{mine->lost(), asks};
      const std::stop_callback on_stop{stop, asks};
      std::invoke(work, end.get_token(), std::as_const(*mine));
      if (mine->state() != lease_state::lost && !mine->lost().stop_requested()) return;
    }
  }

  const std::string& name() const noexcept;

 private:
  friend struct detail::access;
  std::optional<leadership> campaign_within(wait_time wait, std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

/// campaign() without a thread (async.hpp).
pending<leadership> async_campaign(election& of, wait_limit limit = {}, std::stop_token stop = {});
/// current() without a thread; one round trip, shared with the other requests of the session.
pending<std::optional<leader>> async_current(const election& of);
/// leaders::next() without a thread. `of` must live until the operation has ended, and must not be
/// used meanwhile. If the operation fails, no leader was skipped: the next one continues at the
/// same place.
pending<leader> async_next(leaders& of, wait_limit limit = {}, std::stop_token stop = {});

}  // namespace holdfast
