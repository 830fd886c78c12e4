#include <gtest/gtest.h>

#include <functional>
#include <holdfast/both.hpp>
#include <memory>
#include <optional>
#include <stdexcept>

#include "engine/stage.hpp"

// What a program may do in a callback with its result: release it, destroy the lock object and the
// last reference to the session, acquire again, or throw where it may. Each on every primitive with
// callbacks.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::lease;

/// A session of its own with one lock object, of which the program keeps nothing else.
template <class Lock>
struct only {
  template <class... Args>
  explicit only(const holdfast::session_options& o, Args... args)
      : lock(std::make_unique<Lock>(holdfast::open("memory:completions", o), "it", args...)) {}
  std::unique_ptr<Lock> lock;
};

/// A callback for a result.
struct deed {
  const char* name;
  /// The callback's action. Its arguments release the result, destroy the lock object, and acquire
  /// again.
  std::function<void(const std::function<void()>& give_back, const std::function<void()>& let_go,
                     const std::function<void()>& again)>
      act;
};
void PrintTo(const deed& d, std::ostream* to) { *to << d.name; }

const std::vector<deed>& deeds() {
  static const auto* const all = new std::vector<deed>{
      {"keeps_it", [](const auto&, const auto&, const auto&) {}},
      {"gives_it_back", [](const auto& give_back, const auto&, const auto&) { give_back(); }},
      {"lets_the_lock_and_the_session_go",
       [](const auto&, const auto& let_go, const auto&) { let_go(); }},
      {"gives_it_back_and_lets_go",
       [](const auto& give_back, const auto& let_go, const auto&) { give_back(), let_go(); }},
      {"lets_go_and_gives_it_back",
       [](const auto& give_back, const auto& let_go, const auto&) { let_go(), give_back(); }},
      {"gives_it_back_and_begins_anew",
       [](const auto& give_back, const auto&, const auto& again) { give_back(), again(); }},
      {"begins_anew_and_gives_it_back",
       [](const auto& give_back, const auto&, const auto& again) { again(), give_back(); }},
  };
  return *all;
}

struct completions : testing::TestWithParam<deed> {
  stage s{"memory:completions"};
  std::atomic<int> told{0};

  /// `begin` begins the acquisition. The result is kept here until the deed releases it, or until
  /// the end.
  template <class Held, class Lock, class Begin>
  void run(only<Lock> of, Begin begin) {
    const auto mine = std::make_shared<only<Lock>>(std::move(of));
    const auto held = std::make_shared<std::optional<Held>>();
    const auto next = std::make_shared<std::optional<Held>>();
    begin(*mine->lock).start([=, this, deed = GetParam()](holdfast::result<Held> how) {
      EXPECT_EQ(harness::held_mutexes(), 0);
      ASSERT_TRUE(how) << how.error().what;
      held->emplace(std::move(*how));
      const auto anew = [=, this] {
        begin(*mine->lock).start([=, this](holdfast::result<Held> again) {
          ASSERT_TRUE(again) << again.error().what;
          next->emplace(std::move(*again));
          ++told;
        });
      };
      const bool twice = std::string_view(deed.name).find("anew") != std::string_view::npos;
      deed.act([&] { held->reset(); }, [&] { mine->lock.reset(); }, anew);
      if (!twice) ++told;
    });
    harness::eventually("told", [&] { return told == 1; });
    mine->lock.reset();
    held->reset();
    next->reset();
    expect_free();
  }
  void expect_free() {
    harness::eventually("free", [&] {
      const auto info = s.session.show("it");
      return info.holders.empty() && info.waiters.empty();
    });
  }
};

INSTANTIATE_TEST_SUITE_P(what_is_called, completions, testing::ValuesIn(deeds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(completions, of_a_mutex) {
  run<lease>(only<holdfast::mutex>(s.options()), [](auto& m) { return async_acquire(m); });
}
TEST_P(completions, of_a_fair_mutex) {
  run<lease>(only<holdfast::fair_mutex>(s.options()), [](auto& m) { return async_acquire(m); });
}
TEST_P(completions, of_a_writer) {
  run<lease>(only<holdfast::shared_mutex>(s.options()), [](auto& m) { return async_acquire(m); });
}
TEST_P(completions, of_a_reader) {
  run<lease>(only<holdfast::shared_mutex>(s.options()),
             [](auto& m) { return async_acquire_shared(m); });
}
TEST_P(completions, of_a_semaphore) {
  run<lease>(only<holdfast::semaphore>(s.options(), 1U),
             [](auto& m) { return async_acquire(m, 1); });
}
TEST_P(completions, of_an_election) {
  run<holdfast::leadership>(only<holdfast::election>(s.options()),
                            [](auto& m) { return async_campaign(m); });
}

TEST(a_completion_of_a_barrier, may_use_everything_but_must_not_wait_for_it) {
  stage s;
  holdfast::mutex m{s.session, "m"};
  int completed = 0;
  holdfast::barrier_options o;
  o.on_completion = [&] {
    EXPECT_EQ(harness::held_mutexes(), 0);
    const std::lock_guard guard{m};
    EXPECT_FALSE(s.session.names().empty());
    ++completed;
  };
  {
    holdfast::barrier alone{s.session, "alone", 1, o};
    alone.arrive_and_wait();
    async_arrive_and_wait(alone).future().get().value();
  }
  EXPECT_EQ(completed, 2);
  EXPECT_TRUE(m.try_acquire());
}

TEST(what_is_thrown, by_work_under_a_lock_is_passed_on_and_the_lock_is_free) {
  stage s;
  holdfast::mutex m{s.session, "m"};
  holdfast::shared_mutex shared{s.session, "shared"};
  holdfast::semaphore permits{s.session, "permits", 1};
  holdfast::multi_lock all{m, permits};
  holdfast::redlock most{{s.session}, "most"};
  holdfast::election leads{s.session, "leads"};
  holdfast::both<holdfast::mutex, holdfast::shared_mutex> pair{m, shared};
  const auto throws = [] { throw std::out_of_range("by the work"); };
  const auto each = [&](auto& lock) {
    EXPECT_THROW(holdfast::with_lock(lock, throws), std::out_of_range);
    EXPECT_NO_THROW(holdfast::with_lock(lock, [] {}));
  };
  each(m), each(shared), each(permits), each(all), each(most), each(pair), each(leads);
  EXPECT_THROW(leads.on_leader([&](auto&&...) { throws(); }), std::out_of_range);
  EXPECT_TRUE(leads.try_campaign());
  holdfast::condition_variable condition{s.session, "condition"};
  std::unique_lock lock{m};
  EXPECT_THROW(condition.wait(lock, [&]() -> bool { return throws(), true; }), std::out_of_range);
  EXPECT_TRUE(lock.owns_lock());
  EXPECT_NO_THROW(m.check());
}

TEST(what_is_thrown, by_a_store_decorator_is_passed_on) {
  stage s;
  auto o = s.options();
  o.decorate = [](auto) -> std::unique_ptr<holdfast::store::session_store> {
    throw std::out_of_range("by the decorator");
  };
  EXPECT_THROW((void)holdfast::open("memory:", o), std::out_of_range);
}

}  // namespace
