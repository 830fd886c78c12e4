#include "exhaustion/forms.hpp"

#include <holdfast/with_lock.hpp>
#include <mutex>
#include <shared_mutex>

namespace exhaustion {

namespace {

using holdfast::lease;

/// Acquires while there is memory.
template <class Lock>
lease held(Lock& lock) {
  const enough_memory here;
  return lock.acquire();
}

template <class Lock>
void in_std_style(Lock& lock) {
  lock.lock();
  lock.unlock();
}

lease held_shared(world& w) {
  const enough_memory here;
  return w.shared.acquire_shared();
}

}  // namespace

void PrintTo(const form& f, std::ostream* to) { *to << f.name; }

void world::go_on() {
  constexpr int most = 200;
  if (gone_on_.fetch_add(1) < most) s.clock->advance(100ms);
}

void world::expect_all_free() {
  gone_on_ = 0;
  harness::eventually("everything is free", [&] {
    for (const auto& name : session.names()) {
      const auto info = session.show(name);
      if (info.holders.empty() && info.waiters.empty()) continue;
      go_on();
      return false;
    }
    return true;
  });
  gone_on_ = 0;
  // A thread of the session may have given the lock back to the store, and not yet to the queue of
  // this process.
  const auto is_free = [](const char* what, auto take) {
    harness::eventually(what, [&] { return static_cast<bool>(take()); });
  };
  is_free("plain", [&] { return plain.try_acquire(); });
  is_free("all", [&] { return all.try_acquire(); });
  is_free("again", [&] { return again.try_lock(); });
  again.unlock();
  is_free("shared", [&] { return shared.try_acquire(); });
  is_free("shared by readers", [&] { return shared.try_acquire_shared(); });
  is_free("permits", [&] { return permits.try_acquire(3); });
  is_free("leads", [&] { return leads.try_campaign(); });
  is_free("pair", [&] { return pair.try_acquire(); });
  is_free("most", [&] { return most.try_acquire(); });
  s.clock->advance(
      2min);  // arrivals and refunds are forgotten: otherwise each run would need more memory
}

const std::vector<form>& blocking_forms() {
  static const auto* const all = new std::vector<form>{
      {"open", [](world&) { (void)holdfast::open("memory:exhausted"); }},
      // With every thread that a session may have, one lock idle, one held, and one waited for.
      {"end",
       [](world& w) {
         holdfast::session_options o;
         o.clock = w.s.clock;
         o.detect_deadlocks = true;
         auto session = std::make_unique<holdfast::session>(holdfast::open("memory:", o));
         holdfast::lock_options lingering;
         lingering.linger = 1h;
         auto idle = std::make_unique<holdfast::mutex>(*session, "idle", lingering);
         auto taken = std::make_unique<holdfast::mutex>(*session, "taken");
         (void)idle->acquire();
         lease mine = taken->acquire();
         auto next = async_acquire(*taken).future();
         idle.reset();
         taken.reset();
         session.reset();
         mine = {};
         const enough_memory here;
         (void)next.get();
       }},
      {"make",
       [](world& w) {
         const holdfast::mutex made(w.session, "plain");
         const holdfast::shared_mutex read(w.session, "shared");
         const holdfast::redlock most({w.session}, "most");
       }},
      {"lock", [](world& w) { in_std_style(w.plain); }},
      {"lock_fair", [](world& w) { in_std_style(w.fair); }},
      {"lock_recursive", [](world& w) { in_std_style(w.again); }},
      {"lock_shared",
       [](world& w) {
         w.shared.lock_shared();
         w.shared.unlock_shared();
       }},
      {"lock_several", [](world& w) { in_std_style(w.all); }},
      {"lock_both", [](world& w) { in_std_style(w.pair); }},
      {"lock_most", [](world& w) { in_std_style(w.most); }},
      {"acquire", [](world& w) { (void)w.plain.acquire(); }},
      {"acquire_fair", [](world& w) { (void)w.fair.acquire(); }},
      {"acquire_write", [](world& w) { (void)w.shared.acquire(); }},
      {"acquire_read", [](world& w) { (void)w.shared.acquire_shared(); }},
      {"acquire_permits", [](world& w) { (void)w.permits.acquire(2); }},
      {"acquire_expiring",
       [](world& w) {
         const auto p = w.expiring.acquire(30s);
         const enough_memory here;
         w.expiring.release(p.id);
       }},
      {"acquire_several", [](world& w) { (void)w.all.acquire(); }},
      {"acquire_both", [](world& w) { (void)w.pair.acquire(); }},
      {"acquire_most", [](world& w) { (void)w.most.acquire(); }},
      {"campaign", [](world& w) { (void)w.leads.campaign(); }},
      {"try_acquire", [](world& w) { (void)w.plain.try_acquire(); }},
      {"try_acquire_in_vain",
       [](world& w) {
         const lease taken = held(w.plain);
         (void)w.plain.try_acquire();
       }},
      {"try_acquire_fair_in_vain",
       [](world& w) {
         const lease taken = held(w.fair);
         (void)w.fair.try_acquire();
       }},
      {"try_acquire_several", [](world& w) { (void)w.all.try_acquire(); }},
      {"try_acquire_several_in_vain",
       [](world& w) {
         const lease taken = held(w.fair);
         (void)w.all.try_acquire();
       }},
      {"try_acquire_most", [](world& w) { (void)w.most.try_acquire(); }},
      {"try_campaign", [](world& w) { (void)w.leads.try_campaign(); }},
      {"acquire_in_time", [](world& w) { (void)w.plain.try_acquire_for(1s); }},
      {"acquire_fair_in_time", [](world& w) { (void)w.fair.try_acquire_for(1s); }},
      {"acquire_read_in_time", [](world& w) { (void)w.shared.try_acquire_shared_for(1s); }},
      {"acquire_several_in_time", [](world& w) { (void)w.all.try_acquire_for(1s); }},
      {"acquire_most_in_time", [](world& w) { (void)w.most.try_acquire_for(1s); }},
      {"extend", [](world& w) { held(w.plain).extend(); }},
      {"extend_by", [](world& w) { held(w.plain).extend(40s); }},
      {"look",
       [](world& w) {
         lease mine = held(w.plain);
         (void)mine.lost();
         mine.check();
         (void)w.session.show("plain");
         (void)w.session.names();
         (void)w.permits.available();
         (void)w.leads.current();
       }},
      {"release",
       [](world& w) {
         lease mine = held(w.fair);
         (void)mine.release();
       }},
      {"release_several",
       [](world& w) {
         holdfast::multi_lease mine;
         {
           const enough_memory here;
           mine = w.all.acquire();
         }
         (void)mine.release();
       }},
      {"release_most",
       [](world& w) {
         holdfast::quorum_lease mine;
         {
           const enough_memory here;
           mine = w.most.acquire();
         }
         (void)mine.release();
       }},
      {"downgrade",
       [](world& w) {
         lease mine = held(w.shared);
         w.shared.downgrade(mine);
       }},
      {"upgrade",
       [](world& w) {
         lease mine = held_shared(w);
         (void)w.shared.try_upgrade(mine);
       }},
      {"latch",
       [](world& w) {
         const holdfast::latch local_queue(w.session, "latch", 1'000'000);
         (void)local_queue.remaining();
         holdfast::latch(w.session, "latch", 1'000'000).count_down();
         (void)local_queue.wait_for(0s);
         const enough_memory here;
         holdfast::latch(w.session, "latch", 1'000'000).remove();
       },
       true},
      {"barrier",
       [](world& w) {
         holdfast::barrier alone(w.session, "barrier", 1);
         alone.arrive_and_wait();
         alone.arrive_and_wait();
       }},
      {"barrier_in_vain",
       [](world& w) {
         holdfast::barrier two(w.session, "barrier of two", 2);
         auto mine = two.arrive();
         (void)two.wait_for(mine, 0s);
       }},
      {"condition",
       [](world& w) {
         std::unique_lock<holdfast::mutex> lock(w.plain, std::defer_lock);
         {
           const enough_memory here;
           lock.lock();
         }
         (void)w.condition.wait_for(lock, 0s);
         w.condition.notify_all();
       }},
      {"limiter",
       [](world& w) {
         (void)w.limiter.try_take();
         (void)w.limiter.take(5);
         (void)w.limiter.peek();
         w.limiter.refund(6);
       },
       true},
      {"admission", [](world& w) { (void)w.door.try_admit(); }, true},
      {"admission_in_time", [](world& w) { (void)w.door.admit_for(1s); }, true},
      {"with_lock", [](world& w) { holdfast::with_lock(w.plain, [](auto&&...) {}); }},
  };
  return *all;
}

const std::vector<form>& forms_without_thread() {
  static const auto* const all = new std::vector<form>{
      {"acquire", [](world& w) { (void)w.result_of(async_acquire(w.plain)); }},
      {"try_acquire", [](world& w) { (void)w.result_of(async_acquire(w.plain, 0s)); }},
      {"acquire_in_time", [](world& w) { (void)w.result_of(async_acquire(w.plain, 5s)); }},
      {"acquire_fair", [](world& w) { (void)w.result_of(async_acquire(w.fair)); }},
      {"acquire_write", [](world& w) { (void)w.result_of(async_acquire(w.shared)); }},
      {"acquire_read", [](world& w) { (void)w.result_of(async_acquire_shared(w.shared)); }},
      {"acquire_permits", [](world& w) { (void)w.result_of(async_acquire(w.permits, 2)); }},
      {"acquire_expiring",
       [](world& w) {
         const auto p = w.result_of(async_acquire(w.expiring, 30s));
         const enough_memory here;
         w.expiring.release(p.id);
       }},
      {"acquire_several", [](world& w) { (void)w.result_of(async_acquire(w.all)); }},
      {"acquire_most", [](world& w) { (void)w.result_of(async_acquire(w.most)); }},
      {"acquire_most_in_time", [](world& w) { (void)w.result_of(async_acquire(w.most, 1s)); }},
      {"release_most",
       [](world& w) {
         holdfast::quorum_lease mine;
         {
           const enough_memory here;
           mine = w.most.acquire();
         }
         (void)w.result_of(async_release(std::move(mine)));
       }},
      {"acquire_both", [](world& w) { (void)w.result_of(async_acquire(w.pair)); }},
      {"campaign", [](world& w) { (void)w.result_of(async_campaign(w.leads)); }},
      {"current", [](world& w) { (void)w.result_of(async_current(w.leads)); }},
      {"acquire_behind_another",
       [](world& w) {
         lease before = held(w.fair);
         (void)w.result_of(async_acquire(w.fair), [&] { (void)before.release(); });
       }},
      {"acquire_behind_a_thread",
       [](world& w) {
         lease before = held(w.plain);
         (void)w.result_of(async_acquire(w.plain), [&] { (void)before.release(); });
       }},
      {"handed_on",
       [](world& w) {
         lease before = held(w.plain);
         std::future<holdfast::result<lease>> next;
         {
           const enough_memory here;
           next = async_acquire(w.plain).future();
         }
         (void)before.release();
         const enough_memory here;
         harness::eventually("a result", [&] {
           w.go_on();
           return next.wait_for(0s) == std::future_status::ready;
         });
       }},
      {"read_behind_a_writer",
       [](world& w) {
         lease before = held(w.shared);
         (void)w.result_of(async_acquire_shared(w.shared), [&] { (void)before.release(); });
       }},
      {"write_behind_a_reader",
       [](world& w) {
         lease before = held_shared(w);
         (void)w.result_of(async_acquire(w.shared), [&] { (void)before.release(); });
       }},
      {"several_behind_another",
       [](world& w) {
         lease before = held(w.fair);
         (void)w.result_of(async_acquire(w.all), [&] { (void)before.release(); });
       }},
      {"too_late",
       [](world& w) {
         const lease before = held(w.fair);
         (void)w.result_of(async_acquire(w.fair, 2s));
       }},
      {"stopped",
       [](world& w) {
         const lease before = held(w.fair);
         std::stop_source stop(std::nostopstate);
         {
           const enough_memory here;
           stop = std::stop_source();
         }
         (void)w.result_of(async_acquire(w.fair, {}, stop.get_token()),
                           [&] { stop.request_stop(); });
       }},
      {"release", [](world& w) { (void)w.result_of(async_release(held(w.plain))); }},
      {"extend",
       [](world& w) {
         const lease mine = held(w.plain);
         (void)w.result_of(async_extend(mine));
       }},
      {"extend_several",
       [](world& w) {
         holdfast::multi_lease mine;
         {
           const enough_memory here;
           mine = w.all.acquire();
         }
         (void)w.result_of(async_extend(mine));
       }},
      {"downgrade",
       [](world& w) {
         const lease mine = held(w.shared);
         (void)w.result_of(async_downgrade(w.shared, mine));
       }},
      {"upgrade",
       [](world& w) {
         lease mine = held_shared(w);
         (void)w.result_of(async_upgrade(w.shared, mine));
       }},
      {"latch",
       [](world& w) {
         holdfast::latch local_queue(w.session, "latch", 1);
         (void)w.result_of(async_count_down(local_queue));
         (void)w.result_of(async_wait(local_queue));
         const enough_memory here;
         local_queue.remove();
       },
       true},
      {"barrier",
       [](world& w) {
         holdfast::barrier alone(w.session, "barrier", 1);
         (void)w.result_of(async_arrive_and_wait(alone));
       }},
      {"condition",
       [](world& w) {
         lease mutex = held(w.plain);
         (void)w.result_of(async_wait(w.condition, std::move(mutex), 2s));
       }},
      {"condition_that_is_notified",
       [](world& w) {
         lease mutex = held(w.plain);
         (void)w.result_of(async_wait(w.condition, std::move(mutex), 5s), [&] {
           w.go_on();
           w.condition.notify_all();
         });
       }},
      {"notify", [](world& w) { (void)w.result_of(async_notify_one(w.condition)); }},
      {"limiter", [](world& w) { (void)w.result_of(async_take(w.limiter, 1)); }, true},
      {"admission", [](world& w) { (void)w.result_of(async_admit(w.door)); }, true},
      {"names", [](world& w) { (void)w.result_of(async_names(w.session)); }},
      {"show", [](world& w) { (void)w.result_of(async_show(w.session, "plain")); }},
  };
  return *all;
}

}  // namespace exhaustion
