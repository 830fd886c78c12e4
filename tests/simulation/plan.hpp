#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/server.hpp"
#include "simulation/world.hpp"

/// What happens in a run: made from a seed, and reduced part by part after a failure.
namespace simulation {

/// The subject of a run. Each theme makes its own plan from a seed.
enum class theme {
  locks,
  slots,
  meetings,
  stores,
  endings,
  barriers,
  async,
  rates,
  worse,
  scripts,
  rows,
  permits,
  deadlocks,
  items,
  sessions
};
inline constexpr theme all_themes[] = {
    theme::locks,   theme::slots,    theme::meetings,  theme::stores,
    theme::endings, theme::barriers, theme::async,     theme::rates,
    theme::worse,   theme::permits,  theme::deadlocks,
#ifdef HOLDFAST_WITH_REDIS
    theme::scripts,
#endif
#ifdef HOLDFAST_WITH_SQL
    theme::rows,    theme::sessions,
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
    theme::items,
#endif
};

/// The origin of a plan, written as 17 (about locks) or slots:17.
struct seed_of {
  std::uint64_t number = 0;
  theme about = theme::locks;
};
std::string to_string(const seed_of& s);
/// Nothing if the text is neither a seed nor a theme.
std::optional<seed_of> parse_seed(std::string_view text);
std::optional<theme> parse_theme(std::string_view text);
std::string_view to_string(theme t) noexcept;

enum class lock_kind {
  mutex,
  fair,
  recursive,
  shared,
  semaphore,
  counting,
  latch,
  barrier,
  condition,  ///< uses the mutex before it
  limiter,
  election,
  admission,  ///< uses the two names before it: a semaphore and a limiter
  both,       ///< the two mutexes before it, combined
  redlock,    ///< on all stores
  expiring,   ///< shares the name of a semaphore before it
};
enum class store_kind {
  told,
  untold,
  sees_death,
  scripts,
  contenders,
  slots,
  told_slots,
  postgres,
  mariadb,
  memcached,
  advisory,
  redisson
};
std::string_view to_string(store_kind k) noexcept;

struct name_plan {
  lock_kind kind = lock_kind::mutex;
  std::uint32_t capacity = 1;  ///< of a limiter: how many tokens come back in `per`
  std::uint32_t burst = 0;
  nanos per = 0;
  std::size_t store = 0;
  bool at_once = false;     ///< tokens come back together; for a barrier: a completion function
  std::uint32_t keys = 0;   ///< of a limiter: keys with a bucket each, beside the one for all
  std::uint32_t local = 0;  ///< of a limiter: tokens that are taken ahead for a process
  bool grows = false;       ///< a limiter's rules become more generous while it is used
  bool shrinks = false;     ///< a limiter's rules become stricter while it is used
  unsigned prefers =
      0;  ///< a shared_mutex: 1 readers, 2 writers; an election: its candidates' priorities
};

/// One acquisition, what the thread does while it holds the lock, and how it releases it.
struct step {
  enum class style { lease, standard, callback };
  enum class inside {
    nothing,
    extend,
    extend_to,
    extend_late,
    upgrade,
    downgrade,
    again,
    shorten,  ///< never planned by itself; one of the operations of `more`
    extend_late_to
  };
  enum class end { release, destroy };

  nanos think = 0;
  std::size_t name = 0;
  style how = style::lease;
  bool shared = false;
  bool several = false;  ///< all names together, by a multi_lock
  std::uint32_t weight = 1;
  nanos wait = never;  ///< zero: one try
  nanos stop_after = never;
  nanos hold = 0;
  inside what = inside::nothing;
  end back = end::release;
  unsigned deed = 0;    ///< one of 8 numbers that choose the operation on a name of its kind
  unsigned more = 0;    ///< further operations under the lock, chosen at that time
  bool forces = false;  ///< first takes the lock away from a holder, as an operator does
  /// While it holds the lock, it queries the lock's holders. A wait for tokens: it first asks when
  /// they come, and waits hardly longer.
  bool looks = false;
  /// With a lock object of its process that has other terms. A wait for a condition: with a mutex
  /// of a session of its own, which ends meanwhile.
  bool otherwise = false;
  /// A try with an object of another kind, as a program makes it that took the name of another one.
  bool clashes = false;
  nanos soon = 0;     ///< `what` is done after this time; zero: after half of `hold`
  nanos clings = 0;   ///< how long it keeps a lost lock
  unsigned form = 0;  ///< another form of the same calls; zero: the first one

  /// Whether no thread waits for all names together.
  bool takes_several_without_a_thread() const {
    return several && ((more > 0 && how == style::callback) || form > 3);
  }
};

struct thread_plan {
  std::vector<step> steps;
};

struct process_plan {
  nanos begins = 0;
  nanos lease = second;
  nanos linger = 0;
  nanos local_time = 10 * millisecond;
  nanos max_hold = never;
  unsigned max_bypass = 250;
  bool renew = true;
  bool unconfirmed = false;
  int priority = 0;             ///< as a candidate
  nanos keep = 0;               ///< how long it keeps a latch; zero: as the library does by itself
  nanos session_lease = 0;      ///< of its sessions, whose locks say `lease`; zero: of both
  std::size_t max_waiters = 0;  ///< zero: no limit
  std::uint32_t more_permits = 0;  ///< it asks for a counting_semaphore with as many more
  /// How the process uses a barrier: by blocking calls; by calls with a limit, without waiting; as
  /// a double_barrier.
  enum class meets { by_calls, with_a_limit, twice };
  meets how = meets::by_calls;
  std::vector<thread_plan> threads;
};

struct fault_plan {
  enum class kind {
    pause,
    kill,
    cut,
    restart,
    forget,
    freeze,
    evict,
    suspend,
    full,
    read_only,  ///< of rows: as a standby, or with default_transaction_read_only
    lose_key,
    step,           ///< the server's clock is set, by `length`: only fences are judged
    clock_forward,  ///< rows: the same forward; judged fully once old leases have ended
    clock_back,
    refuse_row,  ///< rows: the server lets nobody change the row of `name`
    divide,      ///< rows: a standby takes over, and the former primary takes writes for `length`
    restore      ///< consensus stores: from a backup, or with nothing
  };
  kind what = kind::pause;
  nanos at = 0;
  nanos length = 0;
  std::size_t process = 0;
  std::size_t store = 0;  ///< a fault of a server concerns this one; a cut separates from it
  std::size_t name = 0;
};

struct plan {
  std::uint64_t seed = 0;
  theme about = theme::locks;
  store_kind store = store_kind::told;
  std::vector<store_kind> others;  ///< the stores beside it
  std::vector<name_plan> names;
  std::vector<process_plan> processes;
  std::vector<fault_plan> faults;
  machine_traits machine;
  network_traits network;
  int drift_per_mille = 0;
  bool wall_only_grows = false;
  nanos clocks_apart = 0;  ///< each further store's clock is ahead by this much more
  nanos command_timeout = 2 * second;
  nanos session_timeout = 3 * second;  ///< of contenders

  /// Nothing goes wrong, so no call may report that something did.
  bool calm() const noexcept;
  /// Processes die, the store sees that, and nothing else goes wrong.
  bool only_deaths() const noexcept;
  /// Connections break for moments that are short beside the leases, and nothing else goes wrong:
  /// no lease is lost.
  bool only_short_cuts() const noexcept;
  /// Answers are late, or connections break for a moment now and then, and a holder that renews in
  /// time tolerates all of it.
  bool renewals_come_in_time() const noexcept;
  /// No thread is granted a lock that another thread held, so each grant lasts for a whole lease;
  /// and nobody changes a lease.
  bool has_a_name_for_each_thread() const noexcept;
  /// Messages are at most late, and no answer comes after its time-out.
  bool answers_come_in_time() const noexcept;
  /// Answers are late, by this much at most, and nothing else goes wrong.
  bool only_late_answers(nanos most) const noexcept;
  /// Whether the server lets nobody change the row of that name at some moment of that span.
  bool refuses_row(std::size_t name, nanos from, nanos to) const noexcept;
  /// No hold ends by itself.
  bool renews() const noexcept;
  nanos longest_lease() const noexcept;
  /// No latch, no barrier, and so on.
  bool has_only_locks() const noexcept;
  /// Rows, which a transaction of another process may lock.
  bool on_rows() const noexcept {
    return store == store_kind::postgres || store == store_kind::mariadb;
  }
  /// Calls change(step, process_plan) for each step.
  template <class F>
  void for_each_step(F change) {
    for (auto& one : processes) {
      for (auto& t : one.threads) {
        for (auto& s : t.steps) change(s, one);
      }
    }
  }
  /// Whether the store notifies waiters at once.
  bool tells() const noexcept {
    return others.empty() && store != store_kind::untold && store != store_kind::slots &&
           store != store_kind::told_slots && store != store_kind::mariadb &&
           store != store_kind::memcached && store < store_kind::advisory;
  }
};

/// The number of the name whose records it uses.
std::size_t own_name(const plan& p, std::size_t name) noexcept;
/// Whether the step uses the asynchronous form.
bool without_waiting(const plan& p, const step& s) noexcept;

plan make_plan(const seed_of& s);
/// Seeds from here on vary their plans in ways that were added later; the plans of earlier seeds
/// stay unchanged.
inline constexpr std::uint64_t newer_seeds = std::uint64_t{1} << 33;
/// More threads at few names, very long and very short holds, short time limits, requests out of
/// order.
void vary(plan& p);
/// From this seed on, plans also arrange events that chance combines too seldom.
inline constexpr std::uint64_t newest_seeds = std::uint64_t{1} << 34;
void arrange(plan& p);
/// From this seed on, plans also provoke the effects of a wrong time or a wrong order.
inline constexpr std::uint64_t latest_seeds = std::uint64_t{1} << 35;
void provoke(plan& p);
/// From this seed on, plans also provoke defects that only a look at the store shows, or that show
/// only where no lease ends.
inline constexpr std::uint64_t provoking_seeds = std::uint64_t{1} << 37;
/// False if it has nothing of its kind for this plan.
bool provoke_more(plan& p);
/// From this seed on, plans also arrange what happens just before a server freezes, and events that
/// chance alone never makes: more_locks.cpp and its neighbours.
inline constexpr std::uint64_t freezing_seeds = std::uint64_t{1} << 38;
/// From this seed on, plans also give up reservations behind which others have reserved.
inline constexpr std::uint64_t reserving_seeds = std::uint64_t{1} << 39;
/// From this seed on, half of the plans arrange events that were too rare for the simulator to find
/// the faults of other authors. arrange_more_trouble() returns false if it has nothing of its kind
/// for this plan.
inline constexpr std::uint64_t troubled_seeds = std::uint64_t{1} << 40;
bool arrange_more_trouble(plan& p);
/// Each arranges about a third of the plans, and returns false if it has nothing of its kind for
/// this plan.
bool arrange_more_locks(random_source& r, plan& p);
bool arrange_more_stores(random_source& r, plan& p);
bool arrange_more_meetings(random_source& r, plan& p);
/// What make_plan() omits while a defect in it is known and a search looks for others.
struct left_out {
  bool several = false;
  bool extend_late = false;
  bool downgrade = false;
};
left_out& plans_leave_out();
std::string describe(const plan& p);

/// Plans with one part less, the largest parts first.
std::vector<plan> smaller(const plan& p);

}  // namespace simulation
