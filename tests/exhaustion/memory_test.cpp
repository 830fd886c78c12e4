#include <gtest/gtest.h>

#include <poll.h>

#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>

#include "exhaustion/forms.hpp"
#include "harness/failing.hpp"
#include "harness/temp_dir.hpp"
#include "session/session_impl.hpp"

// The n-th allocation fails, for n = 0, 1, 2, … until a form needs no more: of the calling thread,
// and of the session's own threads. Each time the call throws std::bad_alloc or returns an error,
// the program continues, nothing stays acquired, and the session works as before. The sanitizer
// lane checks for leaks.
namespace exhaustion {
namespace {

/// The error is neither a defect nor the store's fault. But a node of a majority that could not be
/// asked for want of memory counts as one that does not answer, and so does a store while this
/// test's clock leaps.
void expect_it_blames_only_memory(const holdfast::error& e) {
  const enough_memory here;
  EXPECT_NE(e.reason(), holdfast::errc::internal) << e.what();
  if (harness::contains(e.what(), "'most'")) return;
  if (harness::contains(e.what(), "had not answered in time")) return;
  EXPECT_NE(e.reason(), holdfast::errc::unavailable) << e.what();
}

/// With ever more memory, until there is enough. Returns how often there was not.
int with_ever_more_memory(world& w, const form& f, of whose) {
  for (int n = 0;; ++n) {
    SCOPED_TRACE(std::to_string(n) + " allocations");
    bool enough = false;
    {
      const std::jthread time([&w](const std::stop_token& stop) {
        const enough_memory here;
        for (; !stop.stop_requested(); ::poll(nullptr, 0, 1)) w.go_on();
      });
      const no_memory_after now(n, whose);
      try {
        f.run(w);
      } catch (const holdfast::error& e) {
        expect_it_blames_only_memory(e);
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(no_memory_after::failed());
      }
      enough = !no_memory_after::failed();
    }
    w.expect_all_free();
    if (enough || testing::Test::HasFailure()) return n;
  }
}

using trial = std::tuple<form, of, const char*>;

// SQLite's own allocations are not C++, and do not fail here.
std::string url_of(const char* store, const harness::temp_dir& dir) {
  return store == std::string("sqlite") ? "sqlite:" + dir.file("locks.db") : "memory:";
}

struct each_form : testing::TestWithParam<trial> {
  harness::temp_dir dir;
  world w{url_of(std::get<2>(GetParam()), dir)};
};

std::string name_of(const testing::TestParamInfo<trial>& info) {
  const auto& [f, whose, store] = info.param;
  const bool callers = whose == of::this_thread;
  return std::string(f.name) + (callers ? "_of_the_caller" : "_of_the_sessions_threads") + "_on_" +
         store;
}

/// On each store, with too little memory for the caller and for the session's own threads. Forms
/// whose data a store remembers for a minute need more memory each time: they run only where the
/// minute is by the test's clock.
std::vector<trial> trials(const std::vector<form>& forms) {
  std::vector<trial> all;
  for (const form& f : forms) {
    for (const of whose : {of::this_thread, of::others}) {
      all.emplace_back(f, whose, "memory");
#ifdef HOLDFAST_WITH_SQLITE
      if (!f.is_remembered) all.emplace_back(f, whose, "sqlite");
#endif
    }
  }
  return all;
}

TEST_P(each_form, without_memory_fails_and_leaves_nothing) {
  const auto& [f, whose, store] = GetParam();
  (void)with_ever_more_memory(w, f, whose);
}

INSTANTIATE_TEST_SUITE_P(with_a_thread, each_form, testing::ValuesIn(trials(blocking_forms())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(without_a_thread, each_form,
                         testing::ValuesIn(trials(forms_without_thread())), name_of);

using holdfast::lease;
using holdfast::lease_state;
using verb = holdfast::store::permits_verb;
using fault = holdfast::testing::fault;

struct shortage : testing::Test {
  world w{"memory:"};
  engine_test::stage& s = w.s;
  holdfast::session& session = w.session;

  void until_renewed_after(std::size_t before) {
    harness::eventually("renewed", [&] {
      s.clock->advance(100ms);
      return s.script->count(verb::renew) > before;
    });
  }
};

TEST_F(shortage, of_a_moment_costs_no_lease) {
  for (int n = 0; n < 40; ++n) {
    SCOPED_TRACE(n);
    const lease held = w.fair.acquire();
    const lease beside = w.permits.acquire(2);
    const std::size_t before = s.script->count(verb::renew);
    {
      const no_memory_after now(n, of::others);
      s.clock->advance(10s);
      until_renewed_after(before);
    }
    until_renewed_after(s.script->count(verb::renew));
    harness::eventually("held", [&] {
      s.clock->advance(100ms);
      return held.state() == lease_state::held && beside.state() == lease_state::held &&
             held.remaining() > 15s && beside.remaining() > 15s;
    });
  }
}

/// Takes tokens in one way, and returns how many it has.
using take_of = std::function<std::uint64_t(world&, holdfast::rate_limiter&)>;
struct tokens : testing::TestWithParam<std::pair<const char*, take_of>> {
  world w{"memory:"};
  holdfast::rate_limiter few{w.session, "few", {{.tokens = 50, .per = 500h}}};

  // Another thread may give them back.
  void expect_left(std::uint64_t tokens) {
    harness::eventually(
        "they are there", [&] { return few.peek().tightest().remaining == tokens; }, 10s);
  }
  void try_it(of whose, int allocations, bool& enough) {
    std::uint64_t taken = 0;
    {
      const no_memory_after now(allocations, whose);
      try {
        taken = GetParam().second(w, few);
      } catch (const std::exception&) {
        taken = 0;
      }
      enough = !no_memory_after::failed();
    }
    expect_left(50 - taken);
    if (taken > 0) few.refund(taken);
  }
};

TEST_P(tokens, are_refunded_if_there_was_no_memory_for_the_answer) {
  for (const auto whose : {of::this_thread, of::others}) {
    bool enough = false;
    for (int n = 0; !enough && !HasFailure(); ++n) {
      SCOPED_TRACE(std::to_string(n) + " allocations");
      try_it(whose, n, enough);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    each_form, tokens,
    testing::ValuesIn(std::vector<tokens::ParamType>{
        {"tried", [](world&, auto& of) { return of.try_take(7).tokens; }},
        {"waited_for", [](world&, auto& of) { return of.take(7).tokens; }},
        {"reserved", [](world&, auto& of) { return of.reserve(7, 1h).tokens; }},
        {"taken_without_a_thread",
         [](world& w, auto& of) { return w.result_of(async_take(of, 7)).tokens; }},
        {"reserved_without_a_thread",
         [](world& w, auto& of) { return w.result_of(async_reserve(of, 7, 1h)).tokens; }},
        {"admitted",
         [](world& w, auto& of) {
           holdfast::admission door{of, holdfast::permits(w.permits, 1)};
           return door.try_admit(7).rate.tokens;
         }},
        {"admitted_without_a_thread",
         [](world& w, auto& of) {
           holdfast::admission door{of, holdfast::permits(w.permits, 1)};
           return w.result_of(async_admit(door, 7)).rate.tokens;
         }},
    }),
    [](const auto& of) { return of.param.first; });

// The process takes twenty at once, and keeps the rest for its next calls.
TEST_F(shortage, of_a_moment_costs_no_tokens_that_the_process_keeps) {
  bool enough = false;
  for (int n = 0; !enough && !HasFailure(); ++n) {
    SCOPED_TRACE(std::to_string(n) + " allocations");
    holdfast::rate_limiter few{w.session,
                               "few" + std::to_string(n),
                               {{.tokens = 50, .per = 500h}},
                               {.local_tokens = 20, .local_time = 1h}};
    std::uint64_t taken = 0;
    enough = true;
    for (int call = 0; call < 2; ++call) {
      const no_memory_after now(n, of::this_thread);
      try {
        taken += few.try_take(7).tokens;
      } catch (const std::exception&) {
        enough = false;
      }
    }
    harness::eventually(
        "all are there",
        [&] {
          while (few.try_take(1)) ++taken;
          return taken == 50;
        },
        10s);
  }
}

TEST_F(shortage, of_an_extension_leaves_no_renewal_begun) {
  lease held = w.fair.acquire();
  for (int n = 0; n < 8 && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    {
      const no_memory_after now(n, of::this_thread);
      try {
        held.extend();
      } catch (const holdfast::error&) {
      } catch (const std::bad_alloc&) {
      }
    }
    until_renewed_after(s.script->count(verb::renew));
    EXPECT_NE(held.state(), lease_state::lost);
  }
}

TEST_F(shortage, forgets_no_pending_release) {
  for (int n = 0; n < 8 && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    lease held = w.fair.acquire();
    s.script->set(verb::release, fault::drop_request);
    (void)held.release();
    {
      const no_memory_after now(n, of::others, how::for_good);
      const enough_memory here;
      s.script->set(verb::release, fault::none);
      harness::eventually("it has been tried", [&] {
        s.clock->advance(100ms);
        return no_memory_after::failed() || s.session.show("fair").holders.empty();
      });
    }
    w.expect_all_free();
  }
}

// One command for both: releases the name, and queues for the next of this process.
TEST_F(shortage, of_a_release_that_queues_the_next_waiter_is_reported) {
  holdfast::lock_options o;
  o.local_time = 0s;
  holdfast::mutex handed{session, "handed", o};
  const auto line = session.impl()->local_queue_of("handed");
  bool enough = false;
  for (int n = 0; !enough && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    lease before = handed.acquire();
    auto next = async_acquire(handed).future();
    harness::eventually("it is queued in the process", [&] { return line->waiting() == 1; });
    std::error_code how;
    {
      const no_memory_after now(n, of::this_thread);
      how = before.release();
      enough = !no_memory_after::failed();
    }
    if (how) EXPECT_EQ(how, holdfast::errc::overloaded);
    harness::eventually("told", [&] {
      w.go_on();
      return next.wait_for(0s) == std::future_status::ready;
    });
    EXPECT_TRUE(next.get());
    w.expect_all_free();
  }
}

TEST(shortage_at_the_beginning, of_a_wait_without_a_thread_has_changed_nothing) {
  using ending = std::optional<holdfast::failure>;
  bool enough = false;
  for (int n = 0; !enough && !testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE(n);
    world w{"memory:"};
    const auto told = std::make_shared<std::promise<ending>>();
    ending why;
    try {
      auto waits = async_acquire(w.plain);
      {
        const no_memory_after now(n, of::this_thread);
        std::move(waits).start([told](holdfast::result<lease> how) {
          const enough_memory here;
          ending said;
          if (!how) said = std::move(how.error());
          {
            const auto given_back = std::move(how);
          }
          told->set_value(std::move(said));
        });
      }
      why = told->get_future().get();
    } catch (const std::bad_alloc&) {
    }
    enough = !no_memory_after::failed();
    w.expect_all_free();
    if (!why) continue;
    EXPECT_EQ(why->code, holdfast::errc::overloaded);
    EXPECT_FALSE(why->outcome_unknown);
  }
}

// Whichever waiter acquires it releases it: a newcomer may take a lock that is idle for the first
// waiter.
TEST_F(shortage, of_a_waiter_in_the_local_queue_stops_no_later_waiter) {
  using future = std::future<holdfast::result<lease>>;
  const auto is_over = [](future& f) {
    if (f.valid() && f.wait_for(0s) == std::future_status::ready) (void)f.get();
    return !f.valid();
  };
  for (int n = 0; n < 30 && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    lease before = w.plain.acquire();
    future first = async_acquire(w.plain, 1h).future(), second;
    {
      const no_memory_after now(n, of::others);
      second = async_acquire(w.plain, 1h).future();
      (void)before.release();
      harness::eventually("one is told", [&] {
        w.go_on();
        return is_over(first) || is_over(second);
      });
    }
    future third = async_acquire(w.plain).future();
    harness::eventually("all are told", [&] {
      w.go_on();
      const bool one = is_over(first), other = is_over(second);
      return is_over(third) && one && other;
    });
    w.expect_all_free();
  }
}

// The store hangs with the requests of a redlock when there is no memory to release what they will
// acquire. The keeper's release comes after them, not before.
TEST_F(shortage, of_a_release_leaves_nothing_held) {
  auto& keeper = session.impl()->keeper();
  (void)w.plain.acquire();  // it works from then on
  for (int n = 0, enough = 0; enough < 3 && n < 200 && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    s.script->hang(verb::acquire);
    const std::size_t before = s.script->count(verb::release);
    {
      const std::jthread time([&](const std::stop_token& stop) {
        const enough_memory here;
        for (; !stop.stop_requested(); ::poll(nullptr, 0, 1)) w.go_on();
      });
      const no_memory_after now(n, of::this_thread);
      try {
        EXPECT_FALSE(w.most.try_acquire_for(300ms));
      } catch (const holdfast::error&) {
      } catch (const std::bad_alloc&) {
      }
      if (!no_memory_after::failed()) ++enough;
    }
    keeper.abandon("another", {7, 7}, 1s);
    harness::eventually("the keeper has seen to all of it",
                        [&] { return s.script->count(verb::release) > before; });
    s.script->let_go();
    harness::eventually("it is free", [&] {
      w.go_on();
      return w.most.try_acquire().has_value();
    });
    w.expect_all_free();
  }
}

// A node that could not be asked for want of memory has answered before all have been asked.
TEST(shortage_of_a_majority, lets_the_observer_release_when_it_is_notified_of_the_renewal) {
  struct releases final : holdfast::observer {
    std::mutex mutex;
    holdfast::quorum_lease held;
    std::atomic<int> released{0};

    void release() {
      std::unique_lock lock{mutex};
      auto mine = std::move(held);
      lock.unlock();
      (void)mine.release();
    }
    void on_event(const holdfast::event& e) override {
      if (e.kind != holdfast::event_kind::renew_failed) return;
      release();
      ++released;
    }
  };
  const auto tells = std::make_shared<releases>();
  for (int n = 0; n < 60; ++n) {
    SCOPED_TRACE(n);
    holdfast::session_options o;
    o.clock = std::make_shared<holdfast::testing::fake_clock>();
    o.observer = tells;
    auto& clock = static_cast<holdfast::testing::fake_clock&>(*o.clock);
    holdfast::redlock most({holdfast::open("memory:", o)}, "most");
    auto taken = most.acquire();
    {
      const std::lock_guard guard{tells->mutex};
      tells->held = std::move(taken);
    }
    {
      const no_memory_after now(n, of::others);
      const enough_memory here;
      const int before = tells->released;
      int seconds = 0;
      harness::eventually("renewed, or released", [&] {
        clock.advance(1s);
        return tells->released > before || ++seconds > 40;
      });
    }
    tells->release();
  }
  EXPECT_GT(tells->released, 0);
}

TEST_F(shortage, that_lasts_hides_no_loss) {
  lease held = w.fair.acquire();
  lease read = w.shared.acquire_shared();
  std::atomic<int> told{0};
  const auto tell = [&] { ++told; };
  const std::stop_callback of_held{held.lost(), tell}, of_read{read.lost(), tell};
  {
    const no_memory_after now(0, of::others, how::for_good);
    const enough_memory here;
    s.clock->advance(10s);
    s.clock->advance(21s);
    harness::eventually("told", [&] { return told == 2; });
    EXPECT_EQ(held.state(), lease_state::lost);
  }
  EXPECT_EQ(held.release(), holdfast::errc::lost);
  EXPECT_EQ(read.release(), holdfast::errc::lost);
  w.expect_all_free();
}

TEST_F(shortage, that_lasts_ends_pending_waits_when_there_is_memory_again) {
  lease before = w.fair.acquire();
  auto next = async_acquire(w.fair).future();
  auto other = async_acquire(w.fair, 1s).future();
  s.await_waiters("fair", 2);
  {
    const no_memory_after now(0, of::others, how::for_good);
    const enough_memory here;
    for (int i = 0; i < 20; ++i) s.clock->advance(100ms);
  }
  const auto ready = [](auto& f) { return f.wait_for(0s) == std::future_status::ready; };
  harness::eventually("told", [&] {
    w.go_on();
    return ready(other);
  });
  EXPECT_FALSE(other.get());
  (void)before.release();
  harness::eventually("told", [&] {
    w.go_on();
    return ready(next);
  });
  (void)next.get();
  w.expect_all_free();
}

}  // namespace
}  // namespace exhaustion
