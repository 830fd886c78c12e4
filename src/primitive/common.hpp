#pragma once

#include <algorithm>
#include <atomic>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/session.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "primitive/thread_number.hpp"
#include "wait/pending_wait.hpp"

/// What the primitives have in common: checked options, and who holds what in the std style.
namespace holdfast::primitive {

/// What people call an acquisition by: 8 of the 32 digits that name it.
std::string short_id_of(const store::owner_id& owner);

/// Somebody's note ("host pid program reason") and times, as people see them.
participant describe(const store::owner_id& owner, std::uint32_t weight, std::string_view note,
                     std::int64_t since_wall_at, std::int64_t expires_at, std::int64_t now_at);

/// A name of one kind on one session, with everything checked. Throws holdfast::error.
struct subject {
  std::shared_ptr<engine::session_impl> session;
  std::shared_ptr<const engine::lock_config> config;
  std::string_view operation;  ///< "mutex", for messages

  subject(const holdfast::session& s, std::string_view what, const std::string& name,
          const lock_options& options, store::kind kind, std::uint32_t capacity,
          bool store::capabilities::* needs, bool through_local_queue = false);
  subject(const subject&) = delete;
  /// What it let linger goes back to the store.
  ~subject();

  /// Before any mutex of this process is locked: one that another thread held when this process was
  /// forked stays locked. Throws errc::forked.
  void require_usable() const;
  /// Nothing if it could not be had in time or was cancelled; else throws what went wrong.
  std::optional<lease> acquire(const engine::acquire_params& c, wait_time wait,
                               std::stop_token stop) const;
  /// Throws also if cancelled.
  lease take(const engine::acquire_params& c, wait_time wait, std::stop_token stop) const;

  /// The same about what somebody else acquired for it.
  std::optional<lease> in_time(result<lease> got) const;
  lease taken(result<lease> got) const;
  /// False if it ran out of time or was asked to stop; throws any other failure.
  bool settled(status ended) const;
  /// What async_acquire() and the like begin with.
  engine::async_request request(wait_limit limit, std::stop_token stop) const;

  [[noreturn]] void fail(failure f) const;
  void report_misuse(std::string_view detail) const noexcept;
};

/// The std forms belong to threads: who locked may unlock, and nobody else's hold is touched.
class thread_holds {
 public:
  void put(lease held);
  /// This thread's latest hold, out of the list; empty if it has none.
  lease take() noexcept;
  bool mine() const noexcept;
  std::uint64_t fence() const noexcept;
  std::stop_token lost() const;
  /// Throws errc::not_owner or errc::lost.
  void check(const subject& of) const;
  /// Calls `use` with this thread's hold; throws errc::not_owner if it has none. The hold stays
  /// where it is: only this thread can take it away.
  template <class Use>
  auto with_mine(const subject& of, Use use) {
    lease* const held = find();
    if (held == nullptr) of.fail({errc::not_owner, "this thread does not hold it"});
    return use(*held);
  }

 private:
  struct entry {
    thread_number thread;
    std::unique_ptr<lease> held;
  };
  lease* find() const noexcept;

  // A mutex has one, and gets along without the list.
  std::atomic<thread_number> first_thread_{no_thread};
  mutable lease first_;
  std::atomic<std::size_t> more_{0};
  mutable std::mutex mutex_;
  std::vector<entry> entries_;
};

}  // namespace holdfast::primitive
