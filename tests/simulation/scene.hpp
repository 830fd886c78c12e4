#pragma once

#include <chrono>
#include <holdfast/session.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "simulation/answers.hpp"
#include "simulation/books.hpp"
#include "simulation/conversation.hpp"
#include "simulation/judge.hpp"
#include "simulation/local_order.hpp"
#include "simulation/plan.hpp"
#include "simulation/run.hpp"
#include "simulation/server.hpp"

namespace simulation {

inline auto duration(nanos t) { return std::chrono::nanoseconds(t); }
inline auto in_ms(nanos t) { return std::chrono::milliseconds(t / millisecond); }

struct begun;

/// The state of one run of a plan, shared by all that act in it.
struct scene {
  scene(const plan& p, bool traced);
  outcome play();
  std::string play_until(nanos when);
  void begin();

  // ---- faults
  void strike(const fault_plan& f);
  void suspend(const process& which, nanos until);
  void data_lost(nanos until);
  void remember_old_places(std::size_t store);
  void successor_dies(const process& p);
  nanos disturbed(const process& p) const;
  /// When something last went wrong for any process.
  nanos disturbed_anywhere() const;
  /// Whether nothing has gone wrong for so long that an error must be false.
  bool undisturbed(const process& p, nanos since) const;

  // ---- the processes' actions
  void live(process& p, const process_plan& does);
  void end_early(process& p, const process_plan& does, std::vector<holdfast::session> sessions);
  /// Called when the step is over; `before` are the troubles that the process had met before it.
  void note(const process& p, const process_plan& does, const step& s,
            const decltype(process::met)& before);
  static std::string name_of(std::size_t i) { return "n" + std::to_string(i); }

  // ---- the end, and the rule that nobody waits in vain
  nanos end_of_faults() const;
  nanos longest() const;
  void watch();
  void watch_those_who_want_all();
  void watch_readers();
  void watch_conditions();
  void watch_users();
  void watch_users(std::size_t name, std::size_t at_store);
  void watch_waiters(std::size_t name);
  int most_entries(std::size_t name, int process) const;
  void watch_places();
  void watch_grants();
  void watch_holds();
  /// A request of that owner has certainly failed.
  void judge_refusal(std::size_t at, const std::string& name,
                     const holdfast::store::owner_id& owner);
  /// A process hears that this owner has got the lock.
  void judge_grant(std::size_t at, const std::string& name, const holdfast::store::owner_id& owner);
  /// The first store has told this owner of its grant.
  void judge_news(const std::string& name, const holdfast::store::owner_id& owner);
  void watch_silence();
  void watch_crowds();
  void watch_watches();
  void watch_latches();
  void watch_those_at_a_latch(std::size_t name);
  void watch_what_stays();
  void watch_what_is_left_open();
  void watch_listeners(std::size_t name);
  void judge_open_files();
  void watch_rings();
  /// The longest time, where nothing goes wrong, until a waiter gets a free lock.
  nanos bound() const noexcept { return whole.tells() ? 2 * second : 5 * second; }
  /// Whether each store keeps its data for as long as requested.
  bool keeps_all() const noexcept;
  bool all_is_given_back() const;
  void judge_what_is_listed();
  /// Checks that the process does not ask a store again and again without a pause.
  void judge_commands(const process& p, const process_plan& does);
  /// Whether nothing goes wrong, and no thread is late.
  bool punctual() const noexcept {
    return whole.calm() && whole.machine.slow_permille == 0 && whole.machine.stall_per_100k == 0;
  }
  /// The same bound, which is tighter if no thread is late either.
  nanos bound_of_waits() const noexcept {
    const bool has_places =
        whole.store == store_kind::told_slots || whole.store == store_kind::advisory;
    if (has_places && whole.renews() && punctual()) return 500 * millisecond;
    return whole.tells() && punctual() ? 150 * millisecond : bound();
  }
  bool has_a_holder(const std::string& name);
  /// Whether too little is free for a waiter. Beside held permits of a semaphore, enough others may
  /// be free.
  bool is_taken(std::size_t name);
  bool all_is_well(nanos trouble, nanos since) const;
  /// A thread of the process begins, or ends, the step's use of its names.
  void uses(const process& p, const step& s, bool so);
  void look_at_what_is_left(nanos quiet);
  /// Checks that the process has ended all its leases in an orderly way.
  void judge_open_leases(const process& p, const process_plan& does);
  /// Checks that the process has left nothing at the store. `lost`: how many of its requests and
  /// answers were lost while its session closed.
  void judge_close(const process& p, const process_plan& does, std::uint32_t lost);
  /// Checks, when the process has given up its sessions, that they have ended.
  void judge_end_of_sessions(const process& p);
  bool stays(const std::string& name) const;
  std::string blocked() const;

  nanos store_disturbed(const process& p) const;
  /// All stores' view of that name.
  std::string at_the_stores(const std::string& name) const;

  const plan& whole;
  world here;
  trace log;
  judge rules;
  books notes;
  conversation said;
  local_order order;
  shared_grants together;
  sizes_in_use sizes;
  std::vector<std::unique_ptr<server>> stores;
  std::vector<process*> processes;
  struct left_behind {
    const process* by;
    std::shared_ptr<begun> what;
  };
  std::vector<left_behind> pending;  ///< begun by asynchronous steps
  std::multimap<std::string, const process*> waiting;
  std::vector<const process*> want_all;  ///< processes that wait for all names, without a limit
  /// A waiting thread. `line` contains each of them once, in the order in which they asked.
  struct in_line {
    const fiber* who;
    std::string name;
    nanos asked;
    bool shares;
    int goes_first;  ///< served before waiters with a lower number
    bool operator==(const in_line&) const = default;
  };
  std::vector<in_line> line;
  /// Processes that may hold a lock that is not judged, because it does not notify its holders of a
  /// loss.
  std::multimap<std::string, const process*> unjudged;
  std::map<std::string, nanos> idle_since;
  /// Until when the store waits for a dead process to claim its grant.
  std::map<std::string, nanos> unclaimed_until;
  /// Threads that use a shared_mutex and have not become readers, and how often one has begun.
  std::map<std::string, std::pair<int, std::uint64_t>> writers;
  nanos all_free_since = 0;
  std::uint64_t grants_then = 0;
  std::map<std::string, nanos> reads_since;  ///< when only readers began to hold and want the name
  /// Losses reported to observers, of locks that one thread has at a time: process, name,
  /// fence.
  std::map<std::tuple<int, std::string, std::uint64_t>, int> told_lost;
  /// How many leases with that fence have begun. Counted only where a store is restored: elsewhere
  /// no fence is given twice.
  std::map<std::tuple<int, std::string, std::uint64_t>, int> begun_leases;
  /// The same for holds that were released in an orderly way.
  std::set<std::tuple<int, std::string, std::uint64_t>> given_back;
  /// When each process was last told that a lease is in doubt, or has ended.
  std::map<int, nanos> doubted_at, ended_at;
  /// Leases whose begin was reported to observers, and whose end was not: process, name.
  std::map<std::pair<int, std::string>, long> open_leases;
  /// When a user last changed a lease for all that share the hold: process, name.
  std::map<std::pair<int, std::string>, nanos> another_lease;
  std::map<std::pair<std::size_t, int>, int> users;      ///< by name and process: threads
  std::map<std::pair<std::size_t, int>, nanos> used_at;  ///< … when that changed last
  std::set<std::pair<std::size_t, int>> asked_in_vain;   ///< … whose call has ended without a lock
  /// … since when that store has shown more.
  std::map<std::tuple<std::size_t, int, std::size_t>, nanos> unaccounted_since;
  std::set<int> closed_early;  ///< processes that closed a session of their own, and went on
  /// since when the store has shown fewer entries than waiters
  std::map<std::pair<std::size_t, int>, nanos> without_place_since;
  /// Of each latch: the waiters of the last check, and since when they wait.
  std::map<std::size_t, std::map<std::string, std::int64_t>> at_latch;
  std::map<std::size_t, nanos> fits_since;  ///< since when the first waiter of the name fits
  /// Since when the store notifies more of a process's owners than it has threads there.
  std::map<std::pair<std::size_t, int>, nanos> listens_since;
  /// since when a process that waits for nothing watches others
  std::map<int, nanos> watches_since;
  /// Of each name: the holds that the server showed last, and until when each of them lasts.
  std::map<std::size_t, std::map<holdfast::store::owner_id, nanos>> held_until;
  /// Since when a process uses nothing, and how many commands it had sent a while later.
  struct silence {
    nanos since;
    std::uint64_t commands;
  };
  std::map<int, silence> silent;
  nanos disturbed_at = -1000 * second;
  nanos looked_at = -1;
  nanos last_death = -1;
  int at_several = 0;  ///< the number of locks that are being acquired together
  meetings_of_a_run met;
  bool over = false;
  bool loses = false;  ///< some lock is not renewed, so a loss is no sign of trouble
};

}  // namespace simulation
