#include "fault/roles.hpp"

#include "fault/mortal_store.hpp"
#include "harness/eventually.hpp"
#include "harness/seed.hpp"
#include "harness/write_blocker.hpp"

namespace fault_test {

void ground::await_waiters(const holdfast::session& s, const std::string& name,
                           std::size_t n) const {
  harness::eventually(std::to_string(n) + " waiters",
                      [&] { return s.show(name).waiters.size() == n; });
}

void ground::stop(harness::child& one) const {
  const harness::write_blocker no_session_changes_it(dir.file("locks.db"));
  one.stop();
}

namespace {

using namespace std::chrono_literals;

// Arguments: URL NAME LEASE_MS PAGE. Acquires the lock, reports its fence, keeps the lock until it
// gets a line, then reports the state of the lease, and writes to the resource (PAGE) regardless.
const harness::role holder{"holder", [](const std::vector<std::string>& args) {
                             auto session = holdfast::open(args[0]);
                             harness::resource at(args[3]);
                             const std::chrono::milliseconds length(std::stoll(args[2]));
                             holdfast::fair_mutex m{session, args[1], {.lease = length}};
                             holdfast::lease held = m.acquire();
                             harness::say(std::to_string(held.fence()));
                             (void)harness::hear();
                             try {
                               held.check();
                               harness::say("held");
                             } catch (const holdfast::error& e) {
                               harness::say(e.lease_gone() ? "lost" : e.what());
                             }
                             harness::say(at.guarded_write(held.fence()) ? "written" : "refused");
                             (void)harness::hear();
                             return 0;
                           }};

// Arguments: URL NAME. Acquires two of three permits, reports that, keeps them.
const harness::role permit_holder{"permit_holder", [](const std::vector<std::string>& args) {
                                    auto session = holdfast::open(args[0]);
                                    holdfast::semaphore s{session, args[1], 3, {.lease = a_month}};
                                    holdfast::lease held = s.acquire(2);
                                    harness::say("got them");
                                    (void)harness::hear();
                                    return 0;
                                  }};

// Arguments: URL NAME. Locks and unlocks, and keeps the lock idle then.
const harness::role lingerer{"lingerer", [](const std::vector<std::string>& args) {
                               auto session = holdfast::open(args[0]);
                               holdfast::lock_options options;
                               options.lease = a_month;
                               options.linger = std::chrono::hours(1);
                               holdfast::mutex m{session, args[1], options};
                               m.lock(), m.unlock();
                               harness::say("idle");
                               (void)harness::hear();
                               return 0;
                             }};

// Arguments: URL NAME. Waits for the lock, reports that, releases it.
const harness::role waiter{"waiter", [](const std::vector<std::string>& args) {
                             auto session = holdfast::open(args[0]);
                             holdfast::fair_mutex m{session, args[1], {.lease = a_month}};
                             holdfast::lease held = m.acquire();
                             harness::say("got it");
                             return 0;
                           }};

// Arguments: URL NAME VERB ANSWERED. Acquires the lock, renews it, releases it, and is killed on
// the way.
const harness::role mortal{
    "mortal", [](const std::vector<std::string>& args) {
      const death end{static_cast<holdfast::store::permits_verb>(std::stoi(args[2])),
                      args[3] == "1"};
      holdfast::session_options options;
      options.decorate = [&](std::unique_ptr<holdfast::store::session_store> inner) {
        return std::make_unique<mortal_store>(std::move(inner), end);
      };
      auto session = holdfast::open(args[0], std::move(options));
      holdfast::fair_mutex m{session, args[1], {.lease = a_month}};
      holdfast::lease held = m.acquire();
      harness::say("got it");
      (void)harness::hear();
      held.extend();
      (void)held.release();
      harness::say("still alive");
      return 0;
    }};

// Arguments: URL PAGE WORKER TIMES SEED. Acquires the lock this many times, in changing forms, and
// uses the resource.
const harness::role worker{"worker", [](const std::vector<std::string>& args) {
                             auto session = holdfast::open(args[0]);
                             harness::resource at(args[1]);
                             const auto number = static_cast<std::uint32_t>(std::stoul(args[2]));
                             harness::random random(std::stoull(args[4]), number);
                             holdfast::mutex plain{session, "m", {.lease = a_month}};
                             holdfast::fair_mutex fair{session, "m", {.lease = a_month}};
                             for (long done = 0; done < std::stol(args[3]);) {
                               holdfast::mutex& m = random.one_in(2) ? plain : fair;
                               auto held = random.one_in(4) ? m.try_acquire_for(1ms)
                                                            : std::optional(m.acquire());
                               if (!held) continue;
                               at.use({.worker = number, .fence = held->fence()});
                               ++done;
                             }
                             return 0;
                           }};

// Arguments: URL PAGE WORKER TIMES SEED. Readers and writers of one shared_mutex.
const harness::role reader_or_writer{
    "reader_or_writer", [](const std::vector<std::string>& args) {
      constexpr std::uint32_t all = 1U << 30;
      auto session = holdfast::open(args[0]);
      harness::resource at(args[1]);
      const auto number = static_cast<std::uint32_t>(std::stoul(args[2]));
      harness::random random(std::stoull(args[4]), number);
      holdfast::shared_mutex m{session, "rw", {{.lease = a_month}, {}}};
      for (long done = 0; done < std::stol(args[3]); ++done) {
        const bool writes = random.one_in(4);
        holdfast::lease held = writes ? m.acquire() : m.acquire_shared();
        const harness::resource::visit v{number, held.fence(), writes ? all : 1, all, 0};
        at.enter(v);
        if (writes) at.work();
        at.leave(v);
      }
      return 0;
    }};

}  // namespace

}  // namespace fault_test
