#include "conformance/cell.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "harness/eventually.hpp"
#include "harness/passing_on.hpp"
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

// On servers that serve many tests.
std::string fresh_name() {
  static std::atomic<int> number{0};
  return "conformance-" + std::to_string(std::random_device()()) + "-" + std::to_string(++number);
}

#ifdef HOLDFAST_WITH_REDIS
// Servers serve many tests, of other programs too; a prefix of its own makes each store a fresh
// one.
row redis_row(const std::string& servers, const std::string& options = {}) {
  return {.name = servers, .url = [=](const harness::temp_dir&) {
            return harness::url_of_servers(servers) + "?prefix=" + fresh_name() + options;
          }};
}
#endif

#ifdef HOLDFAST_WITH_ZOOKEEPER
// The session is long for the sake of the leases that are asked for here; short ones, and their
// ends, are for the store's own tests.
std::string fresh_zookeeper_url(const harness::temp_dir&) {
  static std::atomic<int> number{0};
  const auto base = std::to_string(std::random_device()()) + "-" + std::to_string(++number);
  return harness::url_of_servers("zookeeper") + "/conformance-" + base + "?session=3h";
}
#endif

#ifdef HOLDFAST_WITH_MEMCACHED
row memcached_row() {
  row r;
  r.name = "memcached";
  r.url = [](const harness::temp_dir&) {
    static std::atomic<int> number{0};
    return harness::url_of_servers("memcached") +
           "?prefix=" + std::to_string(std::random_device()()) + "-" + std::to_string(++number);
  };
  r.lacks = {"lingering_mutex",   "fair_mutex", "shared_mutex", "preferring_shared_mutex",
             "semaphore",         "latch",      "rate_limiter", "election",
             "expiring_semaphore"};
  r.lease_step = std::chrono::seconds(1);
  r.lists_waiters = false;
  return r;
}
#endif

#ifdef HOLDFAST_WITH_POSTGRES
// A schema of its own makes each store a fresh one.
std::string fresh_postgres_url(const harness::temp_dir&) {
  return harness::url_of_servers("postgres") + "?schema=" + fresh_name();
}
#endif

#ifdef HOLDFAST_WITH_MARIADB
std::string fresh_mariadb_url(const harness::temp_dir&) {
  return harness::url_of_servers("mariadb") + fresh_name();
}
#endif

fault_plan invisible_faults() {
  return holdfast::testing::random_faults(
      {.seed = harness::seed(), .duplicate = 200, .drop_notice = 50});
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Who has asked and was told to wait, of all the sessions that it is put before.
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

const std::vector<row>& rows() {
  static const std::vector<row> all{
      {.name = "memory", .url = fresh_memory_url, .several_processes = false},
      {.name = "memory_with_faults",
       .url = fresh_memory_url,
       .faults = invisible_faults,
       .several_processes = false},
#ifdef HOLDFAST_WITH_SQLITE
      {.name = "sqlite", .url = fresh_sqlite_url},
#endif
#ifdef HOLDFAST_WITH_REDIS
      redis_row("redis"),
      redis_row("redis_replicas", "&ack=all"),
      redis_row("redis_sentinel"),
      redis_row("redis_cluster"),
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
      {.name = "zookeeper",
       .url = fresh_zookeeper_url,
       .lacks = {"preferring_shared_mutex", "expiring_semaphore", "rate_limiter", "election"},
       .names_at_once = 200},
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
      memcached_row(),
#endif
#ifdef HOLDFAST_WITH_POSTGRES
      {.name = "postgres", .url = fresh_postgres_url},
#endif
#ifdef HOLDFAST_WITH_MARIADB
      {.name = "mariadb", .url = fresh_mariadb_url, .lacks = {"lingering_mutex"}},
#endif
  };
  return all;
}

fresh_store::fresh_store(const row& r)
    : row_(r),
      waiting_(r.lists_waiters ? nullptr : std::make_shared<who_waits>()),
      url_(r.url(dir_)),
      keeps_open_(holdfast::open(url_)) {}

std::size_t fresh_store::waiting(const std::string& name) const {
  return waiting_ ? waiting_->count(name) : 0;
}

session fresh_store::open(session_options options) const {
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
      {"lingering_mutex", &c::notices},
      {"recursive_mutex", &c::mutex},
      {"fair_mutex", &c::fair},
      {"shared_mutex", &c::shared},
      {"preferring_shared_mutex", &c::preferences},
      {"semaphore", &c::semaphore},
      {"counting_semaphore", &c::unit_permits},
      {"expiring_semaphore", &c::expiring},
      {"latch", &c::latch},
      {"rate_limiter", &c::rate_limiter},
      {"election", &c::election},
  };
  return all;
}

std::vector<cell> cells(const std::vector<std::string>& names) {
  std::vector<cell> all;
  for (const row& r : rows()) {
    for (const primitive& p : primitives()) {
      if (contains(names, p.name) && !contains(r.lacks, p.name)) all.push_back({r, p.name});
    }
  }
  return all;
}

std::vector<cell> shared_by_processes(std::vector<cell> all) {
  std::erase_if(all, [](const cell& c) { return !c.store.several_processes; });
  return all;
}

std::string cell_name(const testing::TestParamInfo<cell>& info) {
  return info.param.store.name + "__" + info.param.primitive;
}

std::size_t suite::waiters() const {
  if (!GetParam().store.lists_waiters) return store_.waiting(name_);
  return here_.show(name_).waiters.size();
}

std::chrono::milliseconds suite::lease_of(std::chrono::milliseconds at_least) const {
  const auto step = GetParam().store.lease_step;
  return (at_least + step - std::chrono::milliseconds(1)) / step * step;
}

void suite::until_waiting(std::size_t n) const {
  harness::eventually(std::to_string(n) + " waiters", [&] { return waiters() == n; });
}

void suite::until_free() const {
  harness::eventually("nobody holds or waits", [&] { return holders() == 0 && waiters() == 0; });
}

}  // namespace conformance
