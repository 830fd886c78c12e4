#pragma once

#include <memory>

#include "engine/by_name.hpp"
#include "engine/deadlock_watch.hpp"
#include "engine/gate.hpp"
#include "engine/hold.hpp"
#include "engine/joint_place.hpp"
#include "engine/keeper.hpp"
#include "engine/linger_watch.hpp"
#include "engine/reader_group.hpp"
#include "engine/runner.hpp"
#include "engine/store_client.hpp"

namespace holdfast::engine {

/// What a session is made of: what speaks to the store, and the parts around it that have threads
/// or are found by name. The parts do not know it.
class core final : public store_client {
 public:
  /// The last one to let go may be one of the session's own threads (a callback that drops what it
  /// was told about): then another thread takes it apart.
  static std::shared_ptr<core> make(std::unique_ptr<store::session_store> store,
                                    session_options options);

  core(std::unique_ptr<store::session_store> store, session_options options);
  /// In a forked child it leaves everything alone: threads are the parent's.
  ~core();

  engine::keeper& keeper() noexcept { return *keeper_; }
  engine::linger_watch& linger_watch() noexcept { return *linger_watch_; }
  /// Null if session_options::detect_deadlocks is off.
  engine::deadlock_watch* deadlock_watch() noexcept { return deadlock_watch_.get(); }
  by_name<gate>& gates() noexcept { return gates_; }
  by_name<reader_group>& reader_groups() noexcept { return reader_groups_; }
  by_name<joint_place>& joint_places() noexcept { return joint_places_; }
  engine::runner& runner() noexcept { return *runner_; }
  const hold_services& for_holds() const noexcept { return for_holds_; }

 private:
  bool on_own_thread() noexcept;
  void wanted(const store::notice& n);

  by_name<gate> gates_;
  by_name<reader_group> reader_groups_;
  by_name<joint_place> joint_places_;
  // Last: their threads use everything above.
  std::unique_ptr<engine::runner> runner_;
  std::unique_ptr<engine::keeper> keeper_;
  std::unique_ptr<engine::linger_watch> linger_watch_;
  std::unique_ptr<engine::deadlock_watch> deadlock_watch_;
  const hold_services for_holds_;
};

}  // namespace holdfast::engine
