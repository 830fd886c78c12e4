#include <unistd.h>

#include <algorithm>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

// What a session shows, for every primitive that gives leases; and many names at once.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;

class sessions : public suite {
 protected:
  std::unique_ptr<exclusive> make(holdfast::session s, const std::string& name,
                                  holdfast::lock_options o = {}) const {
    return make_exclusive(GetParam().primitive, std::move(s), name, o);
  }
};

INSTANTIATE_TEST_SUITE_P(
    stores, sessions,
    testing::ValuesIn(cells({"mutex", "fair_mutex", "shared_mutex", "semaphore"})), cell_name);

/// The facts that a server of that kind reports at least, by the beginning of its URL.
std::string said_by(const std::string& url) {
  const std::vector<std::pair<std::string, std::string>> known{
      {"sqlite:", "sqlite_version"}, {"redis", "redis_version"}, {"postgres:", "server_version"},
      {"mariadb:", "version"},       {"memcached:", "version"},  {"etcd:", "version"},
      {"zookeeper:", "session_ms"},
  };
  for (const auto& [scheme, fact] : known) {
    if (url.starts_with(scheme)) return fact;
  }
  return {};
}

TEST_P(sessions, report_the_facts_of_their_servers) {
  const auto facts = here_.facts();
  const std::string expected = said_by(here_.url());
  if (expected.empty()) return;
  EXPECT_TRUE(std::any_of(facts.begin(), facts.end(), [&](const auto& f) {
    return f.name == expected && !f.value.empty();
  })) << expected;
}

TEST_P(sessions, show_lists_holders_waiters_and_reasons) {
  // memcached's clock counts whole seconds from a start that was rounded down, and may tick late.
  const auto before = std::chrono::system_clock::now() - 10s;
  lease held =
      make(here_, name_, {.lease = 1h, .reason = "bill \"42\" % {} caf\xc3\xa9"})->acquire();
  const auto rival = make(another(), name_, {.reason = "the next one"});
  std::thread waiter([&] { (void)rival->acquire(); });
  until_waiting(1);
  const auto info = here_.show(name_);
  EXPECT_EQ(info.name, name_);
  EXPECT_EQ(info.remaining, 0u);
  EXPECT_TRUE(shows_fence(info.last_fence, held));
  ASSERT_EQ(info.holders.size(), 1u);
  const auto& holder = info.holders[0];
  EXPECT_EQ(holder.short_id, held.short_id());
  EXPECT_EQ(holder.short_id.size(), 8u);
  EXPECT_TRUE(shows_fence(holder.fence, held));
  EXPECT_EQ(holder.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(holder.reason, "bill \"42\" % {} caf\xc3\xa9");
  EXPECT_FALSE(holder.host.empty());
  EXPECT_FALSE(holder.program.empty());
  EXPECT_GT(holder.expires_in, 50min);
  EXPECT_LE(holder.expires_in, 1h);
  EXPECT_GT(holder.since, before);
  if (here_.can().lists_waiters) {
    ASSERT_EQ(info.waiters.size(), 1u);
    EXPECT_EQ(info.waiters[0].reason, "the next one");
    EXPECT_EQ(info.waiters[0].fence, 0u);
  }
  held = {};
  waiter.join();
}

TEST_P(sessions, show_returns_the_same_after_a_renewal) {
  lease held = make(here_, name_, {.lease = 1h, .reason = "bill 42"})->acquire();
  const auto before = here_.show(name_);
  held.extend();
  const auto after = here_.show(name_);
  ASSERT_EQ(before.holders.size(), 1u);
  ASSERT_EQ(after.holders.size(), 1u);
  EXPECT_EQ(after.holders[0].reason, before.holders[0].reason);
  EXPECT_EQ(after.holders[0].pid, before.holders[0].pid);
  EXPECT_EQ(after.holders[0].program, before.holders[0].program);
  EXPECT_EQ(after.holders[0].since, before.holders[0].since);
}

TEST_P(sessions, names_lists_the_used_names_that_match_a_pattern) {
  const lease a = make(here_, "order:1")->acquire();
  const lease b = make(another(), "order:22")->acquire();
  const lease c = make(here_, "job:*")->acquire();
  using list = std::vector<std::string>;
  EXPECT_EQ(here_.names(), (list{"job:*", "order:1", "order:22"}));
  EXPECT_EQ(here_.names("order:*"), (list{"order:1", "order:22"}));
  EXPECT_EQ(here_.names("order:?"), (list{"order:1"}));
  EXPECT_EQ(here_.names("*:*"), (list{"job:*", "order:1", "order:22"}));
  EXPECT_EQ(here_.names("order"), list{});
  EXPECT_EQ(here_.names(""), list{});
}

TEST_P(sessions, show_of_an_unused_name_is_empty) {
  const auto info = here_.show("nobody");
  EXPECT_EQ(info.name, "nobody");
  EXPECT_EQ(info.kind, "");
  EXPECT_TRUE(info.holders.empty() && info.waiters.empty());
}

TEST_P(sessions, a_session_ends_with_its_last_user_and_leaves_nothing) {
  std::optional<lease> held;
  {
    const auto session = another();
    const auto copy = session;
    held = make(copy, name_)->acquire();
  }
  EXPECT_EQ(holders(), 1u);
  held.reset();
  expect_free();
}

TEST_P(sessions, many_names_are_held_at_once_by_one_session) {
  // The cost of that many lies in the session and the store, whatever the kind of lock.
  const int count = GetParam().store.names_at_once / (GetParam().primitive == "mutex" ? 1 : 5);
  std::vector<lease> held;
  for (int i = 0; i < count; ++i) held.push_back(make(here_, std::to_string(i))->acquire());
  EXPECT_EQ(here_.names().size(), static_cast<std::size_t>(count));
  EXPECT_FALSE(make(another(), std::to_string(count - 1))->try_acquire());
  for (const lease& l : held) l.check();
  held.clear();
  EXPECT_TRUE(now_had([&] { return here_.names().empty(); }));
}

TEST_P(sessions, impossible_session_options_are_refused) {
  for (const auto bad : {0ms, -1ms, 99ms, std::chrono::milliseconds(24h * 32),
                         std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    EXPECT_EQ(reason_of([&] { (void)another({.lease = bad}); }), errc::invalid_argument)
        << bad.count();
  }
}

// 10,000 names and one connection.
class crowds : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, crowds, testing::ValuesIn(cells({"mutex", "lingering_mutex"})),
                         cell_name);

TEST_P(crowds, names_by_the_thousand_over_one_session_and_eight_threads) {
  constexpr int threads_count = 8;
  const int names_each = GetParam().store.names_at_once * 5 / threads_count;
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < names_each; ++i) {
        holdfast::mutex lock{here_, std::to_string(t * names_each + i), of_row()};
        const std::lock_guard guard{lock};
        lock.check();
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_TRUE(now_had([&] { return here_.names().empty(); }));
}

}  // namespace
}  // namespace conformance
