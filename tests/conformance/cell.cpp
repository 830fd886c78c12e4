#include "conformance/cell.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>

#include "harness/eventually.hpp"
#include "harness/held_mutexes.hpp"
#include "harness/least_rights.hpp"
#include "harness/passing_on.hpp"
#include "harness/redis_fleet.hpp"
#include "harness/redis_rights.hpp"
#include "harness/seed.hpp"
#include "harness/shared_servers.hpp"

namespace conformance {

using holdfast::session;
using holdfast::session_options;
using holdfast::testing::fault_plan;

namespace {

std::string fresh_memory_url(const harness::temp_dir&) {
  static std::atomic<int> number{0};
  return "memory:conformance-" + std::to_string(++number);
}

#ifdef HOLDFAST_WITH_SQLITE
std::string fresh_sqlite_url(const harness::temp_dir& dir) {
  return "sqlite:" + dir.file("locks.db");
}
#endif

// A name for servers that serve many tests.
std::string fresh_name() {
  static std::atomic<int> number{0};
  return harness::conformance_prefix + std::to_string(std::random_device()()) + "-" +
         std::to_string(++number);
}

#ifdef HOLDFAST_WITH_REDIS
// Servers serve many tests, of other programs too; a prefix of its own makes each store a fresh
// one. The servers may be slow: silent servers are a matter for the store's own tests.
row redis_row(const std::string& servers, const std::string& options = {}) {
  return {.name = servers,
          .url =
              [=](const harness::temp_dir&) {
                return harness::as_documented_user(harness::url_of_servers(servers)) +
                       "?prefix=" + fresh_name() + "&command_timeout=1m" + options;
              },
          .every_rule = servers == "redis"};
}

// Whatever a test did with the keys, and whoever died: none of them stays for ever.
void expect_all_keys_to_end(const std::string& row, const std::string& url) {
  if (!row.starts_with("redis")) return;
  const auto options = url.find("?prefix=");
  const auto prefix = url.substr(options + 8, std::min(url.find('&'), url.size()) - options - 8);
  std::string servers = url.substr(0, options);
  const std::string user = "app:pw@";
  servers.erase(servers.find(user), user.size());
  EXPECT_EQ(harness::redis_keys_for_ever(servers, prefix), "");
}
#endif

#ifdef HOLDFAST_WITH_ZOOKEEPER
// The session is long because of the leases that the tests request; short leases, and their ends,
// are a matter for the store's own tests.
std::string fresh_zookeeper_url(const harness::temp_dir&) {
  return harness::store_of_least_rights(harness::url_of_servers("zookeeper"), fresh_name()) +
         "?session=3h&command_timeout=1m";
}
#endif

#ifdef HOLDFAST_WITH_ETCD
// A session as long as ZooKeeper's, and a prefix of its own.
std::string fresh_etcd_url(const harness::temp_dir&) {
  return harness::store_of_least_rights(harness::url_of_servers("etcd"), fresh_name()) +
         "?session=3h&command_timeout=1m";
}
#endif

#ifdef HOLDFAST_WITH_MEMCACHED
row memcached_row() {
  row r;
  r.name = "memcached";
  r.url = [](const harness::temp_dir&) {
    static std::atomic<int> number{0};
    return harness::url_of_servers("memcached") +
           "?prefix=" + std::to_string(std::random_device()()) + "-" + std::to_string(++number) +
           "&command_timeout=1m";
  };
  r.lacks = {"lingering_mutex",
             "fair_mutex",
             "shared_mutex",
             "preferring_shared_mutex",
             "semaphore",
             "latch",
             "rate_limiter",
             "election",
             "expiring_semaphore",
             "barrier",
             "condition_variable",
             "admission",
             "redlock"};
  r.lease_step = std::chrono::seconds(1);
  r.lists_waiters = false;
  return r;
}
#endif

#ifdef HOLDFAST_WITH_POSTGRES
// A schema that nobody else uses makes each store a fresh one; the user has the rights that
// docs/stores/postgres.md lists, and no more.
row postgres_row(const std::string& servers) {
  return {.name = servers,
          .url =
              [=](const harness::temp_dir&) {
                return harness::lend_store_of_least_rights(harness::url_of_servers(servers),
                                                           fresh_name());
              },
          .give_back = harness::give_back_store};
}

// Through PgBouncer in transaction mode, where sessions cannot listen. Statements travel in another
// way, and waiters poll; so the rules about locks, waiting, faults and loss are run.
row pooled_postgres_row() {
  row r = postgres_row("postgres_pooled");
  r.lacks = {"lingering_mutex"};
  r.only = {{"mutex", "latch"},
            {"exclusion", "waiting", "faults", "losing", "forks_that_open", "latches"}};
  return r;
}

// The permitted silence is so long that leases are as long as requested; that a hold counts for
// less is a matter for the store's own tests. Never a used store: the locks of a killed process
// stay there for a moment.
std::string fresh_advisory_url(const harness::temp_dir&) {
  return harness::store_of_least_rights(harness::url_of_servers("postgres"), fresh_name()) +
         "&mode=session&session=10800s&connections=20";
}
#endif

#ifdef HOLDFAST_WITH_MARIADB
row mariadb_row() {
  return {.name = "mariadb",
          .url =
              [](const harness::temp_dir&) {
                return harness::lend_store_of_least_rights(harness::url_of_servers("mariadb"),
                                                           fresh_name());
              },
          .give_back = harness::give_back_store,
          .lacks = {"lingering_mutex"}};
}

std::string fresh_user_lock_url(const harness::temp_dir&) {
  return harness::store_of_least_rights(harness::url_of_servers("mariadb"), fresh_name()) +
         "?mode=session&session=10800s&connections=20";
}
#endif

// With session locks the server knows no kinds, and of other sessions' holders only the connection;
// facts() reports nothing about the server.
std::vector<std::string> rules_not_for_sessions() {
  return {"used_names.refuse_another_kind_by_its_name_and_change_nothing",
          "used_names.refuse_another_capacity_and_report_the_right_one",
          "mutexes.mutex_kinds_share_a_name_and_exclude_each_other",
          "guards.of_the_standard_work_with_all_lockables_together",
          "losing.a_force_released_lock_passes_on_and_its_former_holder_learns_of_it",
          "losing.a_force_release_by_short_id_releases_only_that_hold",
          "multi_locks.the_loss_of_a_member_is_a_loss_of_all_and_a_release_frees_the_others",
          "multi_locks.without_a_thread_an_extension_names_*",
          "multi_locks.*a_waiter_that_loses_a_member_*",
          "std_forms.std_lock_takes_all_of_several_or_none",
          "sessions.show_lists_holders_waiters_and_reasons",
          "sessions.names_lists_the_used_names_that_match_a_pattern",
          "sessions.report_the_facts_of_their_servers",
          "faults.a_lost_reply_to_acquire_is_repaired_by_a_retry",
          "faults.a_renewal_that_hangs_does_not_delay_the_report_of_the_loss",
          "order_of_arrival.holds_across_threads_and_sessions",
          "order_of_arrival.does_not_change_when_other_waiters_give_up"};
}

// Contenders keep no record of owners that have left, so an observer learns only of gaps.
std::vector<std::string> rules_not_for_contenders() {
  return {"forks_that_open.a_session_of_their_own_see_the_locks_of_the_parent",
          "elections.an_observer_misses_no_leader_between_two_polls",
          "elections.an_observer_misses_no_leader_whose_session_is_already_closed",
          "elections.an_observer_that_missed_too_many_leaders_learns_of_the_gap"};
}

// Primitives that a server's own locks do not support.
std::vector<std::string> not_for_sessions(std::vector<std::string> more = {}) {
  for (const char* const p :
       {"lingering_mutex", "fair_mutex", "preferring_shared_mutex", "semaphore",
        "counting_semaphore", "expiring_semaphore", "latch", "rate_limiter", "election", "barrier",
        "condition_variable", "admission", "redlock"}) {
    more.emplace_back(p);
  }
  return more;
}

fault_plan invisible_faults() {
  return holdfast::testing::random_faults(
      {.seed = harness::seed(), .duplicate = 200, .drop_notification = 50});
}

/// A row with options for every lock, on the store of another row. It has the other row's rules,
/// except for slow ones to which the options do not matter: a ring of waits is made by processes
/// whose locks have no options, and renewal is the same for every lock.
row with(row r, const char* what, std::vector<std::string> primitives,
         std::function<void(holdfast::lock_options&)> locks_have) {
  r.name += what;
  r.only.primitives = std::move(primitives);
  r.locks_have = std::move(locks_have);
  r.without = {"*deadlocks.*", "losing.a_kept_lease_outlives_its_length",
               "faults.a_renewal_that_hangs_does_not_delay_the_report_of_the_loss",
               "faults.a_failed_renewal_makes_a_lease_suspect_and_the_next_good_*"};
  return r;
}

// Longer than any test: a lock that another process gets was requested by it.
row lingering_row(row r) {
  r = with(std::move(r), "_lingering", {"mutex", "recursive_mutex"},
           [](holdfast::lock_options& o) { o.linger = std::chrono::hours(1); });
  r.frees_later = true;
  for (const char* const about_what_the_store_is_asked_for_an_idle_one :
       {"faults.a_lost_reply_to_acquire_is_repaired_by_a_retry",
        "faults.a_lost_reply_to_release_is_reported_and_affects_no_later_holder",
        "faults.a_release_that_did_not_reach_the_store_is_repeated_later",
        "mutexes.a_free_mutex_costs_one_round_trip_to_acquire_and_one_to_release",
        "std_forms.std_lock_takes_all_of_several_or_none"}) {
    r.without.emplace_back(about_what_the_store_is_asked_for_an_idle_one);
  }
  return r;
}

// Where the answer comes with the request, the other primitives cannot behave differently.
row unconfirmed_row(row r) {
  std::vector<std::string> which{"mutex", "recursive_mutex"};
  if (r.name == "redis") which.insert(which.end(), {"fair_mutex", "shared_mutex", "semaphore"});
  r = with(std::move(r), "_unconfirmed", which,
           [](holdfast::lock_options& o) { o.unconfirmed_release = true; });
  r.frees_later = true;
  return r;
}

// Every turn is given by the store.
row no_local_time_row(row r) {
  return with(std::move(r), "_no_local_time", {"mutex", "recursive_mutex"},
              [](holdfast::lock_options& o) { o.local_time = std::chrono::microseconds::zero(); });
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool runs(const row& r, const std::string& primitive) {
  const auto& only = r.only.primitives;
  return !contains(r.lacks, primitive) && (only.empty() || contains(only, primitive));
}

/// The "waiting" of "stores/waiting".
std::vector<std::string> registered_suites() {
  std::vector<std::string> all;
  const auto& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const std::string name = tests.GetTestSuite(i)->name();
    if (name.starts_with("stores/")) all.push_back(name.substr(name.find('/') + 1));
  }
  return all;
}

// Of the thousands of cells, a process needs those that its filter can match, "*/memory__*:…" or
// "stores/waiting.is_cancelled/memory__mutex": registering the others takes longer than most tests,
// above all under a sanitizer.
bool may_be_picked(const std::string& cell) {
  static const std::vector<std::string> patterns = [] {
    std::vector<std::string> all;
    std::istringstream filter(GTEST_FLAG_GET(filter));
    for (std::string one; std::getline(filter, one, ':');) {
      const auto slash = one.rfind('/');
      const auto last = one.substr(slash == one.npos ? 0 : slash + 1);
      // "*/waiting.*" does not restrict the cells.
      const bool of_cells = last.find("__") != last.npos && last.find('.') == last.npos;
      all.push_back(of_cells && one.find('-') == one.npos ? last : "*");
    }
    return all;
  }();
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), cell.c_str(), 0) == 0;
  });
}

/// Records the owners that were told to wait, for all sessions that share it.
class counting_waiters final : public harness::passing_on {
 public:
  counting_waiters(std::unique_ptr<holdfast::store::session_store> inner,
                   std::shared_ptr<who_waits> to)
      : passing_on(std::move(inner)), to_(std::move(to)) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override;

 private:
  const std::shared_ptr<who_waits> to_;
};

/// For sessions whose test has no observer: checks that every event is reported with no mutex held,
/// so that the user's code may do anything.
class told_under_no_mutex final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    EXPECT_LE(harness::held_mutexes(), 0)
        << to_string(e.kind) << " of " << e.name << ": " << e.detail;
  }
};

decorator in_order(decorator first, decorator then) {
  if (!first) return then;
  if (!then) return first;
  return [first, then](std::unique_ptr<holdfast::store::session_store> inner) {
    return then(first(std::move(inner)));
  };
}

}  // namespace

class who_waits {
 public:
  void set(std::string_view name, const holdfast::store::owner_id& owner, bool waits) {
    const std::lock_guard guard{mutex_};
    auto& all = waiting_[std::string(name)];
    waits ? (void)all.insert(owner) : (void)all.erase(owner);
  }
  std::size_t count(const std::string& name) {
    const std::lock_guard guard{mutex_};
    return waiting_[name].size();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::set<holdfast::store::owner_id>> waiting_;
};

namespace {

holdfast::result<holdfast::store::permits_reply> counting_waiters::permits(
    std::string_view name, const holdfast::store::permits_command& c) {
  using holdfast::store::permits_outcome;
  using holdfast::store::permits_verb;
  auto reply = passing_on::permits(name, c);
  if (reply && (c.verb == permits_verb::acquire || c.verb == permits_verb::release)) {
    to_->set(name, c.owner, reply->outcome == permits_outcome::queued);
  }
  return reply;
}

}  // namespace

namespace {

std::vector<row> stores() {
  return {
      {.name = "memory", .url = fresh_memory_url, .every_rule = true, .several_processes = false},
      {.name = "memory_with_faults",
       .url = fresh_memory_url,
       .faults = invisible_faults,
       // The last participant to drop out, repeated after all was over, arrives anew:
       // docs/barrier.md.
       .without = {"barriers.a_barrier_that_all_participants_left_frees_its_name",
                   "barriers.a_drop_whose_answers_were_all_lost_*"},
       .every_rule = true,
       .several_processes = false},
#ifdef HOLDFAST_WITH_SQLITE
      {.name = "sqlite", .url = fresh_sqlite_url, .every_rule = true},
#endif
#ifdef HOLDFAST_WITH_REDIS
      redis_row("redis"),
      redis_row("redis_replicas", "&ack=all&replicas=2&ack_timeout=50s"),
      redis_row("redis_sentinel"),
      redis_row("redis_cluster"),
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
      {.name = "zookeeper",
       .url = fresh_zookeeper_url,
       .lacks = {"preferring_shared_mutex", "expiring_semaphore", "rate_limiter", "barrier",
                 "condition_variable", "admission", "redlock"},
       .without = rules_not_for_contenders(),
       .loses_no_turns = true,
       .names_at_once = 200},
#endif
#ifdef HOLDFAST_WITH_ETCD
      {.name = "etcd",
       .url = fresh_etcd_url,
       .lacks = {"preferring_shared_mutex", "expiring_semaphore", "rate_limiter", "barrier",
                 "condition_variable", "admission", "redlock"},
       .without = rules_not_for_contenders(),
       .loses_no_turns = true,
       .names_at_once = 500},
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
      memcached_row(),
#endif
#ifdef HOLDFAST_WITH_POSTGRES
      postgres_row("postgres"),
      pooled_postgres_row(),
      {.name = "postgres_session",
       .url = fresh_advisory_url,
       .lacks = not_for_sessions(),
       .without = rules_not_for_sessions(),
       .names_at_once = 200},
#endif
#ifdef HOLDFAST_WITH_MARIADB
      mariadb_row(),
      {.name = "mariadb_session",
       .url = fresh_user_lock_url,
       .lacks = not_for_sessions({"shared_mutex"}),
       .without = rules_not_for_sessions(),
       .names_at_once = 200},
#endif
  };
}

// Only the engine's part differs; it runs on stores that answer at once, on a file between
// processes, and on a network.
void add_option_rows(std::vector<row>& all) {
  for (const char* const name : {"memory", "sqlite", "redis"}) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const row& r) { return r.name == name; });
    if (at == all.end()) continue;
    const row base = *at;
    for (const auto& make : {lingering_row, unconfirmed_row, no_local_time_row})
      all.push_back(make(base));
  }
}

}  // namespace

const std::vector<row>& rows() {
  static const std::vector<row> all = [] {
    auto made = stores();
    add_option_rows(made);
    return made;
  }();
  return all;
}

fresh_store::fresh_store(const row& r)
    : row_(r),
      waiting_(r.lists_waiters ? nullptr : std::make_shared<who_waits>()),
      url_(r.url(dir_)),
      keeps_open_(holdfast::open(url_)) {}

fresh_store::~fresh_store() {
  if (row_.give_back) row_.give_back(url_);
}

std::size_t fresh_store::waiting(const std::string& name) const {
  return waiting_ ? waiting_->count(name) : 0;
}

// Every session has an observer: some stores have threads of their own that report an end. Where
// all rules are run, threads that lock in both orders are detected.
session fresh_store::open(session_options options) const {
  if (!options.observer) {
    options.observer = std::make_shared<told_under_no_mutex>();
    options.lock_order = options.lock_order || row_.every_rule;
  }
  if (row_.faults) {
    options.decorate = in_order(holdfast::testing::faulty(row_.faults()), options.decorate);
  }
  if (waiting_) {
    const decorator count = [to = waiting_](std::unique_ptr<holdfast::store::session_store> inner) {
      return std::make_unique<counting_waiters>(std::move(inner), to);
    };
    options.decorate = in_order(count, options.decorate);
  }
  return holdfast::open(url_, std::move(options));
}

std::ostream& operator<<(std::ostream& out, const cell& c) {
  return out << c.primitive << " on " << c.store.name;
}

const std::vector<primitive>& primitives() {
  using c = holdfast::store::capabilities;
  static const std::vector<primitive> all{
      {"mutex", &c::mutex},
      {"lingering_mutex", &c::notifications},
      {"recursive_mutex", &c::mutex},
      {"fair_mutex", &c::fair},
      {"shared_mutex", &c::shared},
      {"preferring_shared_mutex", &c::preferences},
      {"semaphore", &c::semaphore},
      {"counting_semaphore", &c::unit_permits},
      {"expiring_semaphore", &c::expiring},
      {"latch", &c::latch},
      {"barrier", &c::barrier},
      {"condition_variable", &c::barrier},
      {"rate_limiter", &c::rate_limiter},
      {"election", &c::election},
      {"admission", &c::rate_limiter},
      {"multi_lock", &c::mutex},
      {"both", &c::mutex},
      {"redlock", &c::learns_fences},
  };
  return all;
}

std::vector<cell> cells(const std::vector<std::string>& names) {
  std::vector<cell> all;
  for (const row& r : rows()) {
    for (const primitive& p : primitives()) {
      if (!contains(names, p.name) || !runs(r, p.name)) continue;
      if (may_be_picked(r.name + "__" + p.name)) all.push_back({r, p.name});
    }
  }
  return all;
}

const std::vector<narrow_rule>& narrow_rules() {
  static const std::string standard = "the standard's guards and calls, over those of the library";
  static const std::string handle = "what an object of the library does without a store";
  static const std::string told = "which callbacks the library calls, and when";
  static const std::string refused = "refused before a store is asked";
  static const std::vector<narrow_rule> all{
      {"std_forms.lock_guard_*", standard},
      {"std_forms.unique_lock_*", standard},
      {"std_forms.scoped_lock_*", standard},
      {"std_forms.std_lock_*", standard},
      {"std_forms.unlock_by_*", handle},
      {"std_forms.state_queries_are_about_the_*", handle},
      {"std_forms.a_wait_whose_stop_was_*", standard},
      {"std_forms.its_name_*", handle},
      {"guards.*", standard},
      {"mutexes.with_lock_*", handle},
      {"mutexes.a_wrapped_function_*", handle},
      {"exclusion.a_lease_that_is_assigned_*", handle},
      {"exclusion.a_moved_lease_*", handle},
      {"exclusion.an_empty_lease_*", handle},
      {"exclusion.a_lease_outlives_*", handle},
      {"losing.a_lease_may_be_released_*", told},
      {"losing.a_listener_that_releases_does_*", told},
      {"losing.an_observer_that_throws_*", told},
      {"losing.a_lock_that_names_no_lease_time_*", handle},
      {"async_asio.*", "Asio's executors and cancellation, over the library's callbacks"},
      {"async_asio_conditions.*",
       "Asio's executors and cancellation, over the library's callbacks"},
      {"bad_input.leases_that_*", refused},
      {"bad_input.reasons_that_*", refused},
      {"bad_input.its_errors_*", refused},
      {"sessions.impossible_session_options_*", refused},
  };
  return all;
}

std::vector<std::string> left_out() {
  std::vector<std::string> patterns;
  for (const row& r : rows()) {
    for (const auto& rule : r.without) patterns.push_back("*/" + rule + "/" + r.name + "__*");
    if (!r.every_rule && std::getenv("HOLDFAST_EVERY_RULE") == nullptr) {
      for (const auto& n : narrow_rules()) patterns.push_back("*/" + n.rule + "/" + r.name + "__*");
    }
    if (r.only.suites.empty()) continue;
    for (const auto& suite : registered_suites()) {
      if (contains(r.only.suites, suite)) continue;
      patterns.push_back("*/" + suite + ".*/" + r.name + "__*");
    }
  }
  return patterns;
}

std::vector<cell> shared_by_processes(std::vector<cell> all) {
  std::erase_if(all, [](const cell& c) { return !c.store.several_processes; });
  return all;
}

std::string cell_name(const testing::TestParamInfo<cell>& info) {
  return info.param.store.name + "__" + info.param.primitive;
}

namespace {
const row* present = nullptr;
}  // namespace

holdfast::lock_options of_row(holdfast::lock_options options) {
  if (present != nullptr && present->locks_have) present->locks_have(options);
  return options;
}

suite::suite() { present = &GetParam().store; }
suite::~suite() {
#ifdef HOLDFAST_WITH_REDIS
  expect_all_keys_to_end(GetParam().store.name, store_.url());
#endif
  present = nullptr;
}

std::size_t suite::waiters() const {
  if (!GetParam().store.lists_waiters) return store_.waiting(name_);
  return here_.show(name_).waiters.size();
}

std::optional<std::int64_t> suite::claim_us() const {
  if (GetParam().store.loses_no_turns) return {};
  return here_.can().claim_us;
}

std::chrono::milliseconds suite::lease_of(std::chrono::milliseconds at_least) const {
  const auto step = GetParam().store.lease_step;
  return (at_least + step - std::chrono::milliseconds(1)) / step * step;
}

void suite::until_waiting(std::size_t n) const {
  harness::eventually(std::to_string(n) + " waiters", [&] { return waiters() == n; });
}

void suite::expect_no_waiters() const {
  // The last request of a cancelled wait is not waited for.
  if (here_.can().several_processes || GetParam().store.faults) return until_waiting(0);
  EXPECT_EQ(waiters(), 0U);
}

void suite::until_free() const {
  if (GetParam().store.frees_later) {
    holdfast::mutex stranger{store_.open(), name_};
    const auto idle = [&] {
      const auto kind = here_.show(name_).kind;
      return kind.empty() || (kind == "mutex" && stranger.try_lock());
    };
    harness::eventually("nothing lingers", idle);
  }
  harness::eventually("nobody holds or waits", [&] { return holders() == 0 && waiters() == 0; });
}

void suite::expect_free() const {
  if (GetParam().store.frees_later) return until_free();
  EXPECT_EQ(holders(), 0U);
  EXPECT_EQ(waiters(), 0U);
}

bool suite::now_had(const std::function<bool()>& attempt) const {
  if (!GetParam().store.frees_later) return attempt();
  harness::eventually("it is free", attempt);
  return true;
}

}  // namespace conformance
