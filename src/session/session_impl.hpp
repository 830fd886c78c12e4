#pragma once

#include <memory>

#include "diagnose/deadlock_watch.hpp"
#include "lease/hold.hpp"
#include "lease/keeper.hpp"
#include "local/local_queue.hpp"
#include "local/reader_group.hpp"
#include "local/shared_queue_lease.hpp"
#include "session/by_name.hpp"
#include "session/store_client.hpp"
#include "wait/idle_lock_timer.hpp"
#include "wait/runner.hpp"

namespace holdfast::engine {

/// A session: the client of its store, and the parts around it that have threads or are found by
/// name. The parts do not know the session.
class session_impl final : public store_client {
 public:
  /// The last reference may be dropped by one of the session's own threads (a callback that drops
  /// the object it was called about): then another thread destroys the session.
  static std::shared_ptr<session_impl> make(std::unique_ptr<store::session_store> store,
                                            session_options options);

  session_impl(std::unique_ptr<store::session_store> store, session_options options);
  /// In a forked child it leaves everything alone, because the threads are the parent's.
  ~session_impl();

  engine::keeper& keeper() noexcept { return *keeper_; }
  engine::idle_lock_timer& idle_lock_timer() noexcept { return *idle_lock_timer_; }
  /// Null if session_options::detect_deadlocks is off.
  engine::deadlock_watch* deadlock_watch() noexcept { return deadlock_watch_.get(); }
  std::shared_ptr<local_queue> local_queue_of(const std::string& name) {
    return local_queues_.at(name, clock(), *idle_lock_timer_);
  }
  by_name<reader_group>& reader_groups() noexcept { return reader_groups_; }
  by_name<shared_queue_lease>& shared_queue_leases() noexcept { return shared_queue_leases_; }
  engine::runner& runner() noexcept { return *runner_; }
  /// For operations that wait for several stores, so that no single store holds them up, not even
  /// this session's.
  engine::runner& runner_of_several() noexcept { return *runner_of_several_; }
  const hold_services& for_holds() const noexcept { return for_holds_; }

 private:
  bool on_own_thread() noexcept;
  void wanted(const store::notification& n);

  by_name<local_queue> local_queues_;
  by_name<reader_group> reader_groups_;
  by_name<shared_queue_lease> shared_queue_leases_;
  // Last, because their threads use everything above.
  std::unique_ptr<engine::runner> runner_;
  std::unique_ptr<engine::runner> runner_of_several_;
  std::unique_ptr<engine::keeper> keeper_;
  std::unique_ptr<engine::idle_lock_timer> idle_lock_timer_;
  std::unique_ptr<engine::deadlock_watch> deadlock_watch_;
  const hold_services for_holds_;
};

}  // namespace holdfast::engine
