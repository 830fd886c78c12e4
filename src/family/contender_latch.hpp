#pragma once

#include <functional>
#include <holdfast/store/contender_store.hpp>
#include <holdfast/store/own_holds.hpp>

#include "family/own_entries.hpp"

namespace holdfast::family {

/// Latches on a contender store. The count is the name's record, changed by the kernel and replaced
/// version by version, because it outlives the processes that count down. A waiter has a contender
/// node, which ends with its session. Thread-safe.
class contender_latch {
 public:
  /// Removes the nodes of an owner that are still to be removed, before it enters again.
  using clearing = std::function<status(std::string_view name, const store::owner_id& owner)>;

  contender_latch(store::contender_store& port, own_entries& nodes, shared_watches& watches,
                  clock& on, clearing give_up_first)
      : port_(port),
        entries_(nodes),
        watches_(watches),
        clock_(on),
        give_up_first_(std::move(give_up_first)),
        unheard_(on) {}

  result<store::countdown_reply> apply(std::string_view name, const store::countdown_command& c);

  /// Returns true if the name's latch is over. Its record is removed; or, if an arrival may still
  /// be repeated, a later call removes it.
  result<bool> forget_if_over(std::string_view name);
  /// The same for a caller that wants the name for another kind: the record is removed at once.
  result<bool> make_way(std::string_view name);

 private:
  struct state;
  /// For whom the record is read: for no waiter; for a waiter, so that it is kept; or for a waiter
  /// that is also notified when the record changes.
  enum class interest { none, waits, is_called };
  result<state> read(std::string_view name, const store::countdown_command& c, interest what);
  using revision = store::contender_store::revision;
  result<std::optional<revision>> store_back(std::string_view name, state& s,
                                             const store::countdown_command& c);
  result<std::optional<store::countdown_reply>> step(std::string_view name,
                                                     const store::countdown_command& c,
                                                     interest what);
  result<store::countdown_reply> wait(std::string_view name, const store::countdown_command& c);
  result<store::countdown_reply> change(std::string_view name, const store::countdown_command& c,
                                        interest what = interest::none);
  status enter(std::string_view name, const store::countdown_command& c);
  void note_unheard(std::string_view name, const store::countdown_command& c,
                    const store::countdown_record& before, boot_time asked);
  bool cannot_be_told(std::string_view name, const store::countdown_command& c,
                      const store::countdown_record& now) const;
  bool owes_look(std::string_view name, const store::countdown_command& c,
                 const store::countdown_record& was, const store::countdown_record& is) const;
  status look_behind(std::string_view name, std::optional<revision> ours,
                     store::countdown_reply& reply);
  result<bool> in_use_as(std::string_view name, store::countdown_reply& reply);
  status add_waiters(std::string_view name, store::countdown_record& found);
  status leave(std::string_view name, const store::owner_id& owner);

  store::contender_store& port_;
  own_entries& entries_;
  shared_watches& watches_;
  clock& clock_;
  const clearing give_up_first_;
  /// An arrival whose outcome is unknown: the latest arrival before it, since when it may have
  /// counted, and whether there was no latch before it. Also kept for a wait, if there was no
  /// latch.
  struct unheard {
    store::owner_id latest_before;
    boot_time since;
    bool makes = false;
  };
  store::own_holds<unheard> unheard_;
};

}  // namespace holdfast::family
