#include "harness/hung_store.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <vector>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"

namespace harness {

namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::session;

constexpr auto limit = 150ms;

struct limited_call {
  const char* what;
  std::function<bool(const session&)> succeeds;
  bool alone = true;           ///< false: the call needs another thread to succeed
  bool needs_replicas = true;  ///< where replicas acknowledge grants
};

holdfast::rate_limiter bucket(const session& s, const std::string& name) {
  return {s, name, {{.tokens = 1, .per = 1h}}};
}

const std::vector<limited_call>& calls_with_a_limit() {
  static const std::vector<limited_call> all{
      {"a free mutex",
       [](const session& s) {
         return holdfast::mutex(s, "free").try_acquire_for(limit).has_value();
       }},
      {"a mutex that is held",
       [](const session& s) {
         return holdfast::mutex(s, "held").try_acquire_for(limit).has_value();
       }},
      {"a free mutex, without a thread",
       [](const session& s) {
         holdfast::mutex m(s, "async");
         return bool(async_acquire(m, limit).future().get());
       }},
      {"a fair mutex",
       [](const session& s) {
         return holdfast::fair_mutex(s, "fair").try_acquire_for(limit).has_value();
       }},
      {"a reader",
       [](const session& s) {
         return holdfast::shared_mutex(s, "read").try_acquire_shared_for(limit).has_value();
       }},
      {"a writer",
       [](const session& s) {
         return holdfast::shared_mutex(s, "written").try_acquire_for(limit).has_value();
       }},
      {"a semaphore",
       [](const session& s) {
         return holdfast::semaphore(s, "permits", 1).try_acquire_for(limit).has_value();
       }},
      {"a counting semaphore",
       [](const session& s) {
         return holdfast::counting_semaphore(s, "counted", 1).try_acquire_for(limit);
       }},
      {"a permit that others may end",
       [](const session& s) {
         holdfast::expiring_semaphore permits(s, "expiring", 1);
         const auto got = permits.try_acquire_for(1h, limit);
         return got && permits.release(got->id);
       }},
      {"a candidate",
       [](const session& s) {
         return holdfast::election(s, "led").campaign_for(limit).has_value();
       }},
      {"an observer of leaders",
       [](const session& s) {
         return holdfast::election(s, "observed").observe().next_for(limit).has_value();
       },
       false},
      {"a latch", [](const session& s) { return holdfast::latch(s, "latch", 1).wait_for(limit); },
       false},
      {"a participant of a barrier, without a thread",
       [](const session& s) {
         holdfast::barrier b(s, "met", 2);
         return bool(async_arrive_and_wait(b, limit).future().get());
       },
       false},
      {"tokens", [](const session& s) { return bool(bucket(s, "tokens").take_for(1, limit)); }},
      {"tokens, without a thread",
       [](const session& s) {
         auto of = bucket(s, "async-tokens");
         const auto taken = async_take(of, 1, {}, limit).future().get();
         return taken && taken->taken;
       }},
      {"an admission",
       [](const session& s) {
         auto of = bucket(s, "door-tokens");
         holdfast::semaphore slots(s, "door", 1);
         return bool(holdfast::admission(of, slots).admit_for(limit));
       }},
      {"two locks at once",
       [](const session& s) {
         holdfast::mutex one(s, "one"), two(s, "two");
         return holdfast::multi_lock{one, two}.try_acquire_for(limit).has_value();
       }},
  };
  return all;
}

/// The store lacks this operation; the support matrix lists which stores have it.
bool has_none(const holdfast::error& e) { return e.reason() == errc::unsupported; }

// The call timed out or the store is away: in either case it returned to its caller.
void ends(const limited_call& call, const session& hung) {
  SCOPED_TRACE(call.what);
  try {
    EXPECT_FALSE(call.succeeds(hung));
  } catch (const holdfast::error& e) {
    if (has_none(e)) return;
    EXPECT_TRUE(e.reason() == errc::unavailable || e.reason() == errc::timed_out) << e.what();
  }
}

// A late grant was released.
void has_left_nothing(const limited_call& call, const session& beside) {
  if (!call.alone) return;
  eventually(std::string(call.what) + " to succeed", [&] {
    try {
      return call.succeeds(beside);
    } catch (const holdfast::error& e) {
      if (!has_none(e)) throw;
      return true;
    }
  });
}

/// A participant that arrives at a barrier before the store hangs, if the store has barriers.
class participant {
 public:
  explicit participant(const session& s) {
    if (!s.can().barrier) return;
    meets_ = std::make_unique<holdfast::barrier>(s, "arrived", 2);
    arrival_ = meets_->arrive();
  }
  bool waits() { return meets_ && meets_->wait_for(arrival_, limit); }

 private:
  std::unique_ptr<holdfast::barrier> meets_;
  holdfast::barrier::arrival arrival_;
};

/// A reader that locks before the store hangs, if the store has readers.
class reader {
 public:
  explicit reader(const session& s) {
    if (!s.can().shared) return;
    of_ = std::make_unique<holdfast::shared_mutex>(s, "upgraded");
    held_ = of_->try_acquire_shared_for(1min).value();
  }
  // With mode=session the hold may end with its connection.
  bool upgrades() try { return of_ && of_->try_upgrade(held_); } catch (const holdfast::error& e) {
    if (e.reason() != errc::lost) throw;
    return false;
  }

 private:
  std::unique_ptr<holdfast::shared_mutex> of_;
  holdfast::lease held_;
};

// A session does not check at once whether the store is back.
bool can_be_taken(holdfast::mutex& m) {
  try {
    return m.try_acquire().has_value();
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
    return false;
  }
}

/// A waiter that sleeps until it is notified when the store begins to hang, with a renewal of the
/// same session in the store when its time is over.
class early_waiter {
 public:
  explicit early_waiter(const session& s) {
    const auto before = s.store_operations();
    waits_ = harness::concurrently([s] {
      ends(limited_call{"a wait that had begun",
                        [](const session& at) {
                          return holdfast::mutex(at, "held").try_acquire_for(2500ms).has_value();
                        }},
           s);
    });
    eventually("it has asked", [&] { return s.store_operations() > before; });
    // Not before, because its renewals are operations, too.
    renewed_ = holdfast::mutex(s, "renewed", {.lease = 1s}).acquire();
  }
  void await_end() const {
    EXPECT_EQ(waits_.wait_for(20s), std::future_status::ready) << "a wait that had begun";
  }

 private:
  holdfast::lease renewed_;
  std::future<void> waits_;
};

}  // namespace

hang::hang(fault_proxy& proxy)
    : begin([&proxy] {
        proxy.with([](relay& r) {
          r.stall(way::up);
          r.stall(way::down);
        });
      }),
      end([&proxy] { proxy.heal(); }) {}

void calls_end_at_their_limit_while_it_hangs(const hang& how, const std::string& through,
                                             const std::string& direct) {
  const session beside = holdfast::open(direct), hung = holdfast::open(through);
  auto held = holdfast::mutex(beside, "held").acquire();
  // Prepares whatever a session sets up at its first use.
  {
    const auto used = holdfast::mutex(hung, "free").acquire();
  }
  participant arrived(hung);
  const early_waiter early(hung);
  how.begin();
  ends({"a participant of a barrier", [&](const session&) { return arrived.waits(); }}, hung);
  for (const auto& call : calls_with_a_limit()) ends(call, hung);
  early.await_end();
  how.end();
  EXPECT_FALSE(held.release());
  for (const auto& call : calls_with_a_limit()) has_left_nothing(call, beside);
}

void tries_time_out_while_it_hangs(const hang& how, const std::string& through) {
  holdfast::session_options patient, hasty;
  patient.store_timeout = 1h;   // for calls that wait
  hasty.store_timeout = 500ms;  // for calls that ask about their outcome
  const session hung = holdfast::open(through, patient),
                asks_again = holdfast::open(through, hasty);
  holdfast::mutex free(hung, "free");
  {
    const auto used = free.acquire();
  }
  reader reads(asks_again);
  how.begin();
  for (const limited_call& call :
       {limited_call{"a mutex", [&](const session&) { return free.try_acquire().has_value(); }},
        limited_call{"a mutex, without a thread",
                     [&](const session&) {
                       return bool(async_acquire(free, holdfast::one_try).future().get());
                     }},
        limited_call{"a reader",
                     [](const session& s) {
                       return holdfast::shared_mutex(s, "read").try_acquire_shared().has_value();
                     }},
        limited_call{"an upgrade", [&](const session&) { return reads.upgrades(); }},
        limited_call{"a semaphore",
                     [](const session& s) {
                       return holdfast::semaphore(s, "permits", 1).try_acquire().has_value();
                     }},
        limited_call{"a candidate",
                     [](const session& s) {
                       return holdfast::election(s, "led").try_campaign().has_value();
                     }},
        limited_call{"tokens",
                     [](const session& s) { return bool(bucket(s, "tokens").try_take()); }, true,
                     false},
        limited_call{"an admission", [](const session& s) {
                       auto of = bucket(s, "door-tokens");
                       holdfast::semaphore slots(s, "door", 1);
                       return bool(holdfast::admission(of, slots).try_admit());
                     }}}) {
    if (call.needs_replicas || !how.only_replicas) ends(call, hung);
  }
  how.end();
  eventually("it is free again", [&] { return can_be_taken(free); });
}

}  // namespace harness
