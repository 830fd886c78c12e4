#include "store/sql/session_locks.hpp"
#include "harness/concurrently.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <holdfast/testing.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/counting_clock.hpp"
#include "harness/eventually.hpp"
#include "harness/forwarding_clock.hpp"
#include "store/sql/lock_links.hpp"

// mode=session over a server that fails as a test wants it: a lock without a holder stays with no
// connection.
namespace sql_test {
namespace {

using namespace holdfast::store;
using namespace holdfast::store::sql;
using namespace std::chrono_literals;
using holdfast::done;
using holdfast::errc;
using holdfast::failure;
using holdfast::result;
using holdfast::status;
using moment_at = std::optional<std::int64_t>;

/// The state that the connections share.
struct lock_server {
  std::map<std::string, std::int64_t, std::less<>> held_by;  ///< the numbers of connections
  std::vector<std::int64_t> waits{};  ///< the connections that began to wait, in order
  std::int64_t connections = 0;
  std::int64_t now_at = 1'000'000;
  int unlocks_refused = 0;    ///< this many unlocks are answered by an error, and have no effect
  int answers_spoilt = 0;     ///< this many locks are granted, and the answer is an error
  bool changes_fail = false;  ///< half-way
  int waits_refused = 0;
  int tries_delayed = 0;  ///< this many arrive after their caller gave up
  std::vector<std::pair<std::string, std::int64_t>> on_their_way{};
  std::set<std::int64_t> closed{};   ///< their locks are free once the end is seen
  bool full = false;                 ///< accepts no more connections
  std::set<std::int64_t> ended{};    ///< ended, which shows only when they are used
  std::set<std::int64_t> silent{};   ///< no answer comes over these connections any more
  std::set<std::int64_t> stopped{};  ///< the waits of these connections are cancelled
  std::string life = "the first";
  int interrupts = 0;
  int waits_for_nothing = 0;  ///< for an answer that had not come
  int pings = 0;
  int turned_away = 0;
  std::vector<lock_user> users{};  ///< of each name

  void free_what_ended() {
    std::erase_if(held_by, [&](const auto& one) { return closed.contains(one.second); });
  }
  void let_arrive() {
    for (auto& [name, by] : on_their_way) held_by.emplace(std::move(name), by);
    on_their_way.clear();
    free_what_ended();
  }
};

failure refusal() { return {errc::unavailable, "cancelled"}; }

class fake_lock_link final : public lock_link {
 public:
  explicit fake_lock_link(lock_server& s) : server_(s), id_(++s.connections), life_(s.life) {}
  ~fake_lock_link() override { drop(); }

  bool usable() const noexcept override { return usable_; }
  void drop() noexcept override {
    usable_ = false;
    server_.closed.insert(id_);
    server_.free_what_ended();
  }
  // As a real one, which has no descriptor any more after it was dropped.
  int fd() const noexcept override {
    EXPECT_TRUE(usable_);
    return -1;
  }
  std::int64_t id() const noexcept override {
    EXPECT_TRUE(usable_);
    return id_;
  }
  const std::string& life_of_server() const noexcept override { return life_; }

  result<moment_at> try_lock(std::string_view name, lock_mode) override {
    if (ends()) return refusal();
    if (server_.tries_delayed > 0) {
      --server_.tries_delayed;
      server_.on_their_way.emplace_back(name, id_);
      drop();  // as a real one, when no answer comes in time
      return refusal();
    }
    const auto by = server_.held_by.emplace(name, id_).first->second;
    if (by == id_ && server_.answers_spoilt-- > 0) return refusal();
    return by == id_ ? moment_at(++server_.now_at) : moment_at();
  }
  result<bool> unlock(std::string_view name, lock_mode) override {
    if (server_.unlocks_refused-- > 0) return refusal();
    const auto found = server_.held_by.find(name);
    if (found == server_.held_by.end() || found->second != id_) return false;
    server_.held_by.erase(found);
    return true;
  }
  result<moment_at> change(std::string_view, lock_mode) override {
    if (server_.changes_fail) return refusal();
    return moment_at(++server_.now_at);
  }
  status begin(std::string_view name, lock_mode) override {
    if (server_.waits_refused-- > 0) return refusal();
    waits_for_ = name;
    server_.waits.push_back(id_);
    return done{};
  }
  bool over() noexcept override {
    const auto found = server_.held_by.find(waits_for_);
    const bool has_it = found != server_.held_by.end() && found->second == id_;
    return !server_.silent.contains(id_) && (has_it || server_.stopped.contains(id_));
  }
  result<moment_at> end() override {
    if (!over()) ++server_.waits_for_nothing;
    if (server_.stopped.erase(id_) > 0) return refusal();
    return over() ? moment_at(++server_.now_at) : moment_at();
  }
  status interrupt(const lock_link& other) override {
    if (ends()) return refusal();
    ++server_.interrupts;
    server_.stopped.insert(other.id());
    return done{};
  }
  status ping() override {
    ++server_.pings;
    return ends() ? status(refusal()) : status(done{});
  }
  result<std::vector<lock_user>> users(std::string_view) override {
    if (ends()) return refusal();
    return server_.users;
  }

 private:
  /// Now it shows.
  bool ends() {
    if (server_.ended.contains(id_)) drop();
    return !usable_;
  }

  lock_server& server_;
  const std::int64_t id_;
  const std::string life_;
  std::string waits_for_;
  bool usable_ = true;
};

class lock_sessions : public testing::Test {
 protected:
  std::unique_ptr<session_store> open() { return open(clock_); }
  std::unique_ptr<session_store> open(holdfast::clock& on) {
    session_lock_options o;
    o.can = session_capabilities(true, {});
    o.clock = &on;
    const auto connect = [this]() -> result<std::unique_ptr<lock_link>> {
      if (server_.full && ++server_.turned_away > 0) return refusal();
      return std::unique_ptr<lock_link>(std::make_unique<fake_lock_link>(server_));
    };
    return over_session_locks(std::move(*connect()), connect, o);
  }
  static permits_command about(permits_verb verb, std::uint64_t owner) {
    permits_command c;
    c.verb = verb;
    c.owner = {owner, 1};
    c.lease_us = c.queue_lease_us = 3'600'000'000;
    return c;
  }
  permits_outcome outcome(session_store& s, std::string_view name, const permits_command& c) {
    const auto reply = s.permits(name, c);
    EXPECT_TRUE(reply) << reply.error().what;
    return reply->outcome;
  }
  permits_outcome acquire(session_store& s, std::string_view name, std::uint64_t owner) {
    return outcome(s, name, about(permits_verb::acquire, owner));
  }

  lock_server server_;
  holdfast::testing::fake_clock clock_;
  std::unique_ptr<session_store> mine_ = open();
  std::unique_ptr<session_store> other_ = open();
};

TEST_F(lock_sessions, the_thread_that_tidies_wakes_for_the_first_of_many_short_holds) {
  harness::counting_clock clock;
  const auto store = open(clock);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(acquire(*store, "n", 1), permits_outcome::granted);
    EXPECT_EQ(outcome(*store, "n", about(permits_verb::release, 1)), permits_outcome::done);
    clock.until_asleep(1);
  }
  EXPECT_LE(clock.wakes(), 1);
}

// A connection can get a lock again that it holds.
TEST_F(lock_sessions, a_second_owner_of_a_session_does_not_get_a_held_lock) {
  EXPECT_EQ(acquire(*mine_, "m", 1), permits_outcome::granted);
  EXPECT_EQ(acquire(*mine_, "m", 2), permits_outcome::busy);
}

TEST_F(lock_sessions, an_unlock_that_fails_once_is_tried_again) {
  ASSERT_EQ(acquire(*mine_, "m", 1), permits_outcome::granted);
  server_.unlocks_refused = 1;
  EXPECT_EQ(outcome(*mine_, "m", about(permits_verb::release, 1)), permits_outcome::done);
  EXPECT_EQ(server_.connections, 2) << "over the same connection";
}

TEST_F(lock_sessions, an_unlock_that_the_server_refuses_leaves_nothing_locked) {
  ASSERT_EQ(acquire(*mine_, "m", 1), permits_outcome::granted);
  server_.unlocks_refused = 2;
  const auto refused = mine_->permits("m", about(permits_verb::release, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unavailable);
  EXPECT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
  EXPECT_EQ(acquire(*mine_, "n", 3), permits_outcome::granted) << "over a new connection";
}

TEST_F(lock_sessions, other_locks_of_a_broken_connection_are_reported_as_lost) {
  ASSERT_EQ(acquire(*mine_, "m", 1), permits_outcome::granted);
  ASSERT_EQ(acquire(*mine_, "n", 2), permits_outcome::granted);
  server_.unlocks_refused = 2;
  const named_command batch[] = {{"m", about(permits_verb::release, 1)},
                                 {"n", about(permits_verb::renew, 2)}};
  const auto replies = mine_->execute_batch(batch);
  EXPECT_FALSE(replies[0]);
  ASSERT_TRUE(replies[1]);
  EXPECT_EQ(replies[1]->outcome, permits_outcome::absent);
}

TEST_F(lock_sessions, a_lock_granted_with_an_error_as_answer_is_released) {
  server_.answers_spoilt = 1;
  EXPECT_FALSE(mine_->permits("m", about(permits_verb::acquire, 1)));
  EXPECT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
}

TEST_F(lock_sessions, a_try_that_arrives_after_its_connection_was_dropped_takes_nothing) {
  server_.tries_delayed = 2;  // over another connection, too
  EXPECT_FALSE(mine_->permits("m", about(permits_verb::acquire, 1)));
  EXPECT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
  EXPECT_EQ(outcome(*other_, "m", about(permits_verb::release, 2)), permits_outcome::done);
  server_.let_arrive();
  EXPECT_EQ(acquire(*other_, "m", 3), permits_outcome::granted);
  EXPECT_EQ(acquire(*mine_, "m", 1), permits_outcome::busy) << "over a new connection";
}

TEST_F(lock_sessions, a_change_of_mode_that_fails_half_way_leaves_nothing_locked) {
  auto shared = about(permits_verb::acquire, 1);
  shared.kind = kind::shared_mutex;
  shared.capacity = 5;
  ASSERT_EQ(outcome(*mine_, "m", shared), permits_outcome::granted);
  server_.changes_fail = true;
  auto upgrade = about(permits_verb::resize, 1);
  upgrade.weight = 5;
  EXPECT_EQ(outcome(*mine_, "m", upgrade), permits_outcome::absent) << "lost, with its connection";
  EXPECT_EQ(outcome(*mine_, "m", about(permits_verb::renew, 1)), permits_outcome::absent);
  EXPECT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
}

TEST_F(lock_sessions, a_waiter_without_a_connection_gets_one_at_its_next_poll) {
  ASSERT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
  auto patient = about(permits_verb::acquire, 1);
  patient.wait = true;
  server_.waits_refused = 1;
  const auto first = mine_->permits("m", patient);
  const auto second = mine_->permits("m", patient);
  ASSERT_TRUE(first && second);
  EXPECT_LT(first->retry_after_us, second->retry_after_us);
}

TEST_F(lock_sessions, a_full_server_gets_one_connection_attempt_a_second) {
  ASSERT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
  server_.full = true;
  auto patient = about(permits_verb::acquire, 1);
  patient.wait = true;
  const auto waits = [&] { return outcome(*mine_, "m", patient) == permits_outcome::queued; };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(waits());
  EXPECT_EQ(server_.turned_away, 1);
  clock_.advance(1s);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(waits());
  EXPECT_EQ(server_.turned_away, 2);
  server_.full = false;
  clock_.advance(1s);
  EXPECT_GT(mine_->permits("m", patient)->retry_after_us, 50'000) << "it waits at the server";
}

// The holder knows from the reply when its hold ends. From then on only other sessions suffer if it
// stays locked, however long a lease it asked for.
TEST_F(lock_sessions, unlock_a_hold_when_it_counts_no_more) {
  ASSERT_EQ(acquire(*mine_, "m", 1), permits_outcome::granted);
  clock_.advance(9s);
  const auto renewed = mine_->permits("m", about(permits_verb::renew, 1));
  ASSERT_TRUE(renewed && renewed->outcome == permits_outcome::granted);
  const auto lasts = std::chrono::microseconds(renewed->expires_at - renewed->now_at);
  EXPECT_EQ(lasts, 10s);
  clock_.advance(lasts - 1ms);
  EXPECT_EQ(mine_->names().value(), std::vector<std::string>{"m"});
  EXPECT_EQ(acquire(*other_, "m", 2), permits_outcome::busy);
  clock_.advance(1ms);
  harness::eventually("its end", [&] { return mine_->names()->empty(); });
  EXPECT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
}

TEST_F(lock_sessions, unlock_a_hold_in_time_though_its_mode_was_changed) {
  auto writes = about(permits_verb::acquire, 1);
  writes.kind = kind::shared_mutex;
  writes.capacity = writes.weight = 5;
  ASSERT_EQ(outcome(*mine_, "m", writes), permits_outcome::granted);
  clock_.advance(9s);
  ASSERT_EQ(outcome(*mine_, "m", about(permits_verb::resize, 1)), permits_outcome::granted);
  clock_.advance(1s);
  harness::eventually("its end", [&] { return mine_->names()->empty(); });
}

// The answer to a long wait is older than a hold counts, so its waiter asks whether it still holds.
TEST_F(lock_sessions, keep_a_grant_after_a_long_wait_until_its_waiter_asks) {
  harness::counting_clock clock;
  const auto store = open(clock);
  server_.held_by["m"] = 1'000;
  auto patient = about(permits_verb::acquire, 1);
  patient.wait = true;
  ASSERT_EQ(outcome(*store, "m", patient), permits_outcome::queued);
  clock.time.advance(1min);
  server_.held_by["m"] = server_.waits.back();
  harness::eventually("a notification",
                      [&] { return store->inbox().receive(clock.now()).has_value(); });
  clock.until_asleep(1);
  EXPECT_EQ(store->names().value(), std::vector<std::string>{"m"});
  EXPECT_EQ(outcome(*store, "m", patient), permits_outcome::granted);
  EXPECT_EQ(server_.waits.size(), 1U) << "it has not waited again";
}

// Each request to a server that does not answer lasts as long as command_timeout.
TEST_F(lock_sessions, that_find_one_spare_connection_dead_ask_no_other_whether_it_lives) {
  const auto connect = [this] {
    return result<std::unique_ptr<lock_link>>(std::make_unique<fake_lock_link>(server_));
  };
  lock_links links(std::move(*connect()), connect, 10, clock_);
  std::vector<std::unique_ptr<lock_link>> taken;
  for (std::size_t i = 0; i < 5; ++i) taken.push_back(links.take_spare(i));
  for (auto& one : taken) {
    server_.ended.insert(one->id());
    links.give_back(std::move(one));
  }
  const auto made = server_.connections;
  EXPECT_TRUE(links.take_spare(0)->usable());
  EXPECT_EQ(server_.pings, 1);
  EXPECT_EQ(server_.connections, made + 1);
}

// ---- for people

TEST_F(lock_sessions, show_only_the_facts_that_the_server_knows_of_others) {
  server_.users = {{7, true, true, "h1", {}}, {8, false, false, {}, "app"}};
  const auto said = mine_->permits("m", about(permits_verb::inspect, 0));
  ASSERT_TRUE(said) << said.error().what;
  const auto& found = said->found;
  EXPECT_EQ(found.kind, kind::shared_mutex);
  ASSERT_EQ(found.holders.size(), 1U);
  EXPECT_EQ(found.holders[0].weight, 1U);
  EXPECT_EQ(found.holders[0].note, "h1 0 - connection 7") << "no process is known";
  EXPECT_EQ(found.holders[0].expires_at, 0);
  EXPECT_EQ(found.holders[0].since_wall_at, 0);
  ASSERT_EQ(found.queue.size(), 1U);
  EXPECT_EQ(found.queue[0].weight, found.capacity);
  EXPECT_EQ(found.queue[0].note, "- 0 app connection 8");
}

TEST_F(lock_sessions, show_kind_capacity_and_weight_of_their_own_locks) {
  auto writes = about(permits_verb::acquire, 1);
  writes.kind = kind::shared_mutex;
  writes.capacity = writes.weight = 5;
  ASSERT_EQ(outcome(*mine_, "m", writes), permits_outcome::granted);
  const auto said = mine_->permits("m", about(permits_verb::inspect, 0));
  ASSERT_TRUE(said) << said.error().what;
  EXPECT_EQ(said->found.kind, kind::shared_mutex);
  EXPECT_EQ(said->found.capacity, 5U);
  EXPECT_EQ(said->found.holders.at(0).weight, 5U);
}

// ---- connections that ended while nobody used them

class idle_lock_sessions : public lock_sessions {
 protected:
  static constexpr std::int64_t home = 1, home_of_other = 2, waiter = 3;
  /// One owner waits over a connection of its own; another owner of the session holds a lock over
  /// its own.
  void SetUp() override {
    ASSERT_EQ(acquire(*other_, "m", 2), permits_outcome::granted);
    auto patient = about(permits_verb::acquire, 1);
    patient.wait = true;
    ASSERT_EQ(outcome(*mine_, "m", patient), permits_outcome::queued);
    ASSERT_EQ(server_.waits.back(), waiter);
  }
  void give_up() {
    EXPECT_EQ(outcome(*mine_, "m", about(permits_verb::release, 1)), permits_outcome::done);
    EXPECT_EQ(server_.waits_for_nothing, 0) << "all others of the session would wait, too";
  }
};

TEST_F(idle_lock_sessions, a_wait_is_ended_over_a_new_connection_if_the_one_of_all_has_ended) {
  server_.ended.insert(home);
  give_up();
  EXPECT_EQ(server_.interrupts, 1);
  EXPECT_TRUE(server_.stopped.empty()) << "its answer was read, and the connection is of use";
}

TEST_F(idle_lock_sessions, a_wait_whose_connection_answers_nothing_is_dropped_with_it) {
  server_.silent.insert(waiter);
  give_up();
  server_.held_by["m"] = home_of_other;
  auto patient = about(permits_verb::acquire, 1);
  patient.wait = true;
  EXPECT_EQ(outcome(*mine_, "m", patient), permits_outcome::queued);
  EXPECT_GT(server_.waits.back(), waiter) << "over another connection";
}

TEST_F(idle_lock_sessions, a_wait_that_cannot_be_ended_is_dropped) {
  server_.ended.insert(home);
  server_.full = true;
  give_up();
  EXPECT_EQ(server_.interrupts, 0);
}

TEST_F(idle_lock_sessions, a_stranger_with_the_number_of_a_waiter_is_left_alone) {
  server_.ended.insert(home);
  server_.life = "the second";
  give_up();
  EXPECT_EQ(server_.interrupts, 0);
}

TEST_F(idle_lock_sessions, show_repeats_its_query_over_a_new_connection) {
  server_.ended.insert(home);
  const auto shown = mine_->permits("m", about(permits_verb::inspect, 0));
  ASSERT_TRUE(shown) << shown.error().what;
  EXPECT_EQ(shown->found.queue.size(), 1u);
}

// ---- a process that was stopped, or asleep

/// Calls `once`, once, on the thread that tidies, when that is about to sleep until an entry ends.
class clock_of_the_tidy : public harness::forwarding_clock {
 public:
  using forwarding_clock::forwarding_clock;
  std::function<void()> once;
  /// Whether a thread has read the time since this was last set to false.
  mutable std::atomic<bool> read{false};

  holdfast::boot_time now() const noexcept override {
    read = true;
    read.notify_all();
    return forwarding_clock::now();
  }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    if (until != holdfast::forever && once) std::exchange(once, {})();
    forwarding_clock::wait_until(lock, cv, until);
  }
};

// The receiver finds the session's table in use, and sleeps until it is told that it is free.
TEST_F(lock_sessions, find_a_grant_that_comes_as_the_thread_that_tidies_falls_asleep) {
  clock_of_the_tidy clock(clock_);
  const auto store = open(clock);
  server_.held_by["m"] = 1'000;
  std::future<std::optional<notification>> told;
  const struct receives_no_more {
    inbox& from;
    ~receives_no_more() { from.interrupt(); }
  } at_the_end{store->inbox()};
  std::atomic<bool> has_looked{false};
  clock.once = [&] {
    server_.held_by["m"] = server_.waits.back();
    clock.read = false;
    told = harness::concurrently([&] { return store->inbox().receive(holdfast::forever); });
    clock.read.wait(false);
    has_looked = true;
  };
  auto patient = about(permits_verb::acquire, 1);
  patient.wait = true;
  ASSERT_EQ(outcome(*store, "m", patient), permits_outcome::queued);
  harness::eventually("a look", [&] { return has_looked.load(); });
  harness::eventually("a notification",
                      [&] { return told.wait_for(0s) == std::future_status::ready; });
  EXPECT_TRUE(told.get());
}

class late_lock_sessions : public lock_sessions {
 protected:
  void SetUp() override {
    server_.held_by["m"] = 1'000;
    ASSERT_EQ(outcome(*mine_, "m", patient_), permits_outcome::queued);
    ASSERT_EQ(server_.waits.size(), 1u);
  }
  /// The server grants the lock to the waiter.
  void grant() { server_.held_by["m"] = server_.waits.back(); }
  /// Ends the waiter's connection after a long time without use, and grants the lock to another
  /// one.
  void end_connection() {
    server_.ended.insert(server_.waits.front());
    server_.held_by["m"] = 1'000;
  }
  /// The waiter's notification. The read finds nothing while a thread of the session has its table.
  holdfast::store::notification told() {
    std::optional<holdfast::store::notification> n;
    harness::eventually("a notification", [&] {
      n = mine_->inbox().receive(clock_.now());
      return n.has_value();
    });
    return *n;
  }
  static permits_command patient() {
    auto c = about(permits_verb::acquire, 1);
    c.wait = true;
    return c;
  }
  const permits_command patient_ = patient();
};

TEST_F(late_lock_sessions, a_grant_that_is_found_late_counts_only_if_its_connection_still_lives) {
  grant();
  clock_.advance(1min);
  const auto sent = clock_.now().time_since_epoch();
  const auto reply = mine_->permits("m", patient_);
  ASSERT_TRUE(reply && reply->outcome == permits_outcome::granted);
  EXPECT_EQ(server_.pings, 1);
  EXPECT_LE(std::chrono::microseconds(reply->expires_at), sent + 10s);
}

// The network is cut, and the waiter continues to poll: it learns nothing, not even of the grant.
TEST_F(late_lock_sessions, a_grant_is_not_younger_because_the_waiter_polled) {
  for (int second = 0; second < 40; ++second) {
    clock_.advance(1s);
    ASSERT_EQ(outcome(*mine_, "m", patient_), permits_outcome::queued);
  }
  grant();
  server_.ended.insert(server_.waits.front());
  EXPECT_EQ(outcome(*mine_, "m", patient_), permits_outcome::granted);
  EXPECT_EQ(server_.pings, 1);
  EXPECT_NE(server_.held_by.at("m"), server_.waits.front()) << "over a connection that has ended";
}

TEST_F(late_lock_sessions, a_grant_found_after_its_connection_ended_does_not_count) {
  grant();
  clock_.advance(1min);
  server_.ended.insert(server_.waits.front());
  EXPECT_LT(std::chrono::microseconds(told().expires_at), clock_.now().time_since_epoch());
  server_.held_by["m"] = 1'000;
  EXPECT_EQ(outcome(*mine_, "m", patient_), permits_outcome::queued);
}

TEST_F(late_lock_sessions, a_grant_that_was_found_and_not_taken_for_long_is_checked_again) {
  grant();
  (void)told();
  clock_.advance(1min);
  end_connection();
  EXPECT_EQ(outcome(*mine_, "m", patient_), permits_outcome::queued);
}

TEST_F(late_lock_sessions, a_grant_counts_from_when_it_was_not_there_yet) {
  ASSERT_FALSE(mine_->inbox().receive(clock_.now()));
  const auto before = clock_.now().time_since_epoch();
  clock_.advance(1s);
  grant();
  EXPECT_LE(std::chrono::microseconds(told().expires_at), before + 10s);
  EXPECT_EQ(server_.pings, 0) << "no round trip for a short wait";
}

}  // namespace
}  // namespace sql_test
