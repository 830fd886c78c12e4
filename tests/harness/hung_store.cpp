#include "harness/hung_store.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <holdfast/holdfast.hpp>
#include <vector>

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
};

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
      {"a reader",
       [](const session& s) {
         return holdfast::shared_mutex(s, "shared").try_acquire_shared_for(limit).has_value();
       }},
      {"a semaphore",
       [](const session& s) {
         return holdfast::semaphore(s, "permits", 2).try_acquire_for(limit).has_value();
       }},
      {"a latch", [](const session& s) { return holdfast::latch(s, "latch", 1).wait_for(limit); }},
      {"two locks at once",
       [](const session& s) {
         holdfast::mutex one(s, "one"), two(s, "two");
         return holdfast::multi_lock{one, two}.try_acquire_for(limit).has_value();
       }},
  };
  return all;
}

// Not in time, or the store is away: whatever it is, the caller has it back.
void ends(const limited_call& call, const session& hung) {
  SCOPED_TRACE(call.what);
  try {
    EXPECT_FALSE(call.succeeds(hung));
  } catch (const holdfast::error& e) {
    if (e.reason() == errc::unsupported) return;  // the matrix says which stores have it
    EXPECT_TRUE(e.reason() == errc::unavailable || e.reason() == errc::timed_out) << e.what();
  }
}

// Sessions do not ask at once whether the store is back.
bool can_be_taken(holdfast::mutex& m) {
  try {
    return m.try_acquire().has_value();
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
    return false;
  }
}

/// Sleeps until it is notified when the store begins to hang, and a renewal of the same session is
/// in the store when its time is over.
class early_waiter {
 public:
  explicit early_waiter(const session& s)
      : renewed_(holdfast::mutex(s, "renewed", {.lease = 1s}).acquire()) {
    const auto before = s.store_operations();
    waits_ = std::async(std::launch::async, [s] {
      ends(limited_call{"a wait that had begun",
                        [](const session& at) {
                          return holdfast::mutex(at, "held").try_acquire_for(2500ms).has_value();
                        }},
           s);
    });
    eventually("it has asked", [&] { return s.store_operations() > before; });
  }
  void await_end() const {
    EXPECT_EQ(waits_.wait_for(20s), std::future_status::ready) << "a wait that had begun";
  }

 private:
  const holdfast::lease renewed_;
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
  // Whatever a session makes ready at its first use is there.
  {
    const auto used = holdfast::mutex(hung, "free").acquire();
  }
  const early_waiter early(hung);
  how.begin();
  for (const auto& call : calls_with_a_limit()) ends(call, hung);
  early.await_end();
  how.end();
  EXPECT_FALSE(held.release());
  for (const auto* const name : {"free", "held", "async", "one", "two"}) {
    eventually(std::string(name) + " is free again",
               [&] { return holdfast::mutex(beside, name).try_acquire().has_value(); });
  }
}

void tries_end_by_themselves_while_it_hangs(const hang& how, const std::string& through) {
  holdfast::session_options patient;
  patient.store_timeout = 1h;  // which is for calls that wait
  const session hung = holdfast::open(through, patient);
  holdfast::mutex free(hung, "free");
  {
    const auto used = free.acquire();
  }
  how.begin();
  for (const limited_call& call :
       {limited_call{"a mutex", [&](const session&) { return free.try_acquire().has_value(); }},
        limited_call{"a reader",
                     [](const session& s) {
                       return holdfast::shared_mutex(s, "shared").try_acquire_shared().has_value();
                     }},
        limited_call{"a mutex, without a thread", [&](const session&) {
                       return bool(async_acquire(free, holdfast::one_try).future().get());
                     }}}) {
    ends(call, hung);
  }
  how.end();
  eventually("it is free again", [&] { return can_be_taken(free); });
}

}  // namespace harness
