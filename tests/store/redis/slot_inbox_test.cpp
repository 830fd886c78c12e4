#include "store/redis/slot_inbox.hpp"

#include <future>
#include <holdfast/store/forwarding_store.hpp>
#include <holdfast/testing.hpp>

#include "fixture.hpp"
#include "harness/hand_over.hpp"
#include "harness/redis_fleet.hpp"
#include "session/session_impl.hpp"
#include "store/redis/commands.hpp"
#include "store/redis/keys.hpp"

// In a cluster, the node that has the name's slot notifies a waiter, without the cluster bus; and
// over the bus where that is impossible.
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::store::countdown_command;
using holdfast::store::named_command;
using holdfast::store::permits_command;
using holdfast::store::permits_outcome;
using holdfast::store::permits_verb;
namespace redis = holdfast::store::redis;

constexpr auto longer_than_any_test = 1h;

/// A waiter's queue entry lasts without renewal.
class long_places final : public holdfast::store::forwarding_store {
 public:
  using forwarding_store::forwarding_store;
  holdfast::result<holdfast::store::permits_reply> permits(std::string_view name,
                                                           const permits_command& c) override {
    return inner().permits(name, longer(c));
  }
  holdfast::result<holdfast::store::countdown_reply> countdown(
      std::string_view name, const countdown_command& c) override {
    return inner().countdown(name, longer(c));
  }
  std::vector<holdfast::result<holdfast::store::permits_reply>> execute_batch(
      std::span<const named_command> batch) override {
    std::vector<named_command> all;
    for (const auto& one : batch) all.push_back({one.name, longer(one.command)});
    return inner().execute_batch(all);
  }

 private:
  template <class Command>
  static Command longer(Command c) {
    if (c.queue_lease_us > 0)
      c.queue_lease_us = std::chrono::microseconds(longer_than_any_test).count();
    return c;
  }
};

/// A waiter of these sessions is notified, or waits for ever: its clock stands still. The server's
/// clock does not, so entries that nobody renews must last.
holdfast::session_options no_polls() {
  holdfast::session_options o;
  o.clock = std::make_shared<holdfast::testing::fake_clock>();
  o.lease = longer_than_any_test;
  o.decorate = [](auto inner) { return std::make_unique<long_places>(std::move(inner)); };
  return o;
}

class redis_slot_inbox : public testing::Test {
 protected:
  explicit redis_slot_inbox(const std::vector<std::string>& arguments = {})
      : cluster_(15'000, arguments) {}

  int slot_of(const std::string& name) const { return cluster_.slot_of("holdfast:{" + name + "}"); }
  harness::redis_server& owner_of(const std::string& name) const {
    return cluster_.owner(slot_of(name));
  }
  harness::redis_server& other_than(const harness::redis_server& owner) const {
    return *cluster_.nodes()[cluster_.nodes()[0].get() == &owner ? 1 : 0];
  }
  std::string listened_to(const std::string& name) const {
    return owner_of(name).ask({"PUBSUB", "SHARDCHANNELS", "holdfast:inbox:{" + name + "}:*"});
  }
  void until_listening(const std::string& name) const {
    eventually("somebody who listens at the node", [&] { return !listened_to(name).empty(); });
  }
  void until_waiting(const std::string& name, std::size_t count = 1) const {
    eventually("waiters", [&] { return looks_.show(name).waiters.size() == count; });
  }
  /// The number of messages that went over the bus to all nodes.
  long over_the_bus() const {
    long all = 0;
    for (const auto& n : cluster_.nodes()) {
      const auto sent = n->field({"CLUSTER", "INFO"}, "cluster_stats_messages_publish_sent");
      all += sent.empty() ? 0 : std::stol(sent);
    }
    return all;
  }
  /// One session holds the lock; the other waits for it and is notified.
  void hand_over(const std::string& name, const std::function<void()>& before_release = {}) {
    holdfast::mutex first{a_, name}, second{b_, name};
    auto held = first.acquire();
    auto next = async_acquire(second).future();
    until_waiting(name);
    if (before_release) before_release();
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(next.get().value().release());
  }

  harness::redis_cluster cluster_;
  holdfast::session looks_ = holdfast::open(cluster_.url());
  holdfast::session a_ = holdfast::open(cluster_.url(), no_polls());
  holdfast::session b_ = holdfast::open(cluster_.url(), no_polls());
};

TEST_F(redis_slot_inbox, a_lock_is_handed_over_without_the_bus) {
  for (const std::string name : {"a", "b", "c", "d"}) {
    const auto before = over_the_bus();
    hand_over(name, [&] { until_listening(name); });
    hand_over(name);
    EXPECT_EQ(over_the_bus(), before) << name;
  }
}

TEST_F(redis_slot_inbox, waiters_for_other_kinds_are_notified_without_the_bus_too) {
  const auto before = over_the_bus();
  {
    holdfast::shared_mutex first{a_, "s"}, second{b_, "s"};
    auto held = first.acquire();
    auto reader = async_acquire_shared(second).future();
    until_listening("s");
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(reader.get().value().release());
  }
  {
    holdfast::latch first{a_, "l", 1}, second{b_, "l", 1};
    auto open = async_wait(second).future();
    until_listening("l");
    first.count_down();
    EXPECT_TRUE(open.get());
  }
  {
    holdfast::barrier first{a_, "b", 2}, second{b_, "b", 2};
    std::thread waiter([&] { second.arrive_and_wait(); });
    until_listening("b");
    first.arrive_and_wait();
    waiter.join();
  }
  EXPECT_EQ(over_the_bus(), before);
}

TEST_F(redis_slot_inbox, a_waiter_whose_slot_moves_is_notified_and_listens_at_the_new_node) {
  hand_over("m", [&] {
    until_listening("m");
    cluster_.move(slot_of("m"), other_than(owner_of("m")));
  });
  const auto before = over_the_bus();
  hand_over("m", [&] { until_listening("m"); });
  EXPECT_EQ(over_the_bus(), before);
}

TEST_F(redis_slot_inbox, a_waiter_whose_connection_is_cut_is_notified_and_listens_again) {
  hand_over("m", [&] {
    until_listening("m");
    owner_of("m").ask({"CLIENT", "KILL", "TYPE", "pubsub"});
    until_listening("m");
  });
}

/// One name with a waiter, so that both listen at its node.
class redis_cluster_hand_over : public redis_slot_inbox {
 protected:
  redis_cluster_hand_over() {
    for (auto* const s : {&b_, &c_}) {
      holdfast::mutex first{a_, "m"}, second{*s, "m"};
      auto held = first.acquire();
      auto next = async_acquire(second).future();
      eventually("it listens",
                 [&] { return listened_to("m").find(s->impl()->peer()) != std::string::npos; });
      EXPECT_FALSE(held.release());
      EXPECT_FALSE(next.get().value().release());
    }
  }
  holdfast::session b_ = holdfast::open(cluster_.url());
  holdfast::session c_ = holdfast::open(cluster_.url());
};

TEST_F(redis_cluster_hand_over, along_a_queue_costs_one_command_each) {
  harness::hand_over_line(a_, b_, c_).expect_one_command_each();
}

/// A cluster whose servers lack the commands.
class redis_slot_inbox_before_7 : public redis_slot_inbox {
 protected:
  redis_slot_inbox_before_7()
      : redis_slot_inbox({"--rename-command", "SPUBLISH", "", "--rename-command", "SSUBSCRIBE", "",
                          "--rename-command", "SUNSUBSCRIBE", ""}) {}
};

TEST_F(redis_slot_inbox_before_7, waiters_are_notified_over_the_bus) {
  const auto before = over_the_bus();
  for (int i = 0; i < 3; ++i) hand_over("m");
  EXPECT_GT(over_the_bus(), before);
}

TEST_F(redis_slot_inbox, users_without_the_rights_are_notified_over_the_bus) {
  for (const auto& n : cluster_.nodes()) {
    redis_test::give_documented_rights(*n, {"everywhere", "in a cluster"});
    n->ask({"ACL", "SETUSER", "app", "-spublish", "-ssubscribe", "-sunsubscribe"});
  }
  const auto url = harness::as_documented_user(cluster_.url());
  a_ = holdfast::open(url, no_polls());
  b_ = holdfast::open(url, no_polls());
  const auto before = over_the_bus();
  for (int i = 0; i < 3; ++i) hand_over("m");
  EXPECT_GT(over_the_bus(), before);
}

/// An older holdfast in the same fleet: its scripts publish to all, and it listens only there.
class redis_older_holdfast : public redis_slot_inbox {
 protected:
  redis_older_holdfast() {
    options_ = redis::read_options(*holdfast::base::parse_url(cluster_.url())).value();
    options_.dialect = redis::dialect::none;
    options_.host = "127.0.0.1";
    options_.port = static_cast<std::uint16_t>(owner_of("m").port());
    connection_ = std::move(redis::greet(options_, redis::purpose::commands)).value();
    const std::string_view words[] = {"SCRIPT", "LOAD", redis::permits_script().text};
    std::string load;
    redis::append_command(load, words);
    EXPECT_FALSE(run(load).is_error());
  }
  redis::resp_value run(const std::string& bytes) {
    return redis::exchange(*connection_, bytes, 1, {holdfast::boot_clock::now() + 60s})
        .value()
        .front();
  }
  permits_outcome ask(permits_verb verb, const std::string& peer = "nobody") {
    permits_command c;
    c.verb = verb;
    c.owner = {7, 7};
    c.wait = true;
    c.lease_us = c.queue_lease_us = 60'000'000;
    c.peer = peer;
    std::string bytes;
    redis::append_permits(bytes, {"holdfast"}, "m", c);
    const std::string until = "9000000000000000";
    bytes += "$" + std::to_string(until.size()) + "\r\n" + until + "\r\n";
    return redis::read_permits(run(bytes), verb, c.lease_us).value().outcome;
  }

  redis::redis_options options_;
  std::unique_ptr<redis::connection> connection_;
};

TEST_F(redis_older_holdfast, that_waits_is_notified_by_a_newer_one) {
  auto elsewhere = options_;
  elsewhere.port = static_cast<std::uint16_t>(other_than(owner_of("m")).port());
  redis::subscription listening(elsewhere);
  ASSERT_TRUE(listening.open());
  auto held = holdfast::mutex(a_, "m").acquire();
  ASSERT_EQ(ask(permits_verb::acquire, listening.peer()), permits_outcome::queued);
  EXPECT_FALSE(held.release());
  std::optional<holdfast::store::notification> got;
  eventually("it is told", [&] {
    got = listening.receive(holdfast::boot_clock::now() + 10ms);
    return got.has_value();
  });
  EXPECT_EQ(got->owner, (holdfast::store::owner_id{7, 7}));
}

TEST_F(redis_older_holdfast, that_releases_notifies_a_newer_waiter) {
  ASSERT_EQ(ask(permits_verb::acquire), permits_outcome::granted);
  holdfast::mutex second{b_, "m"};
  auto next = async_acquire(second).future();
  until_listening("m");
  EXPECT_EQ(ask(permits_verb::release), permits_outcome::done);
  EXPECT_FALSE(next.get().value().release());
}

/// One inbox, on a clock of its own.
class redis_slot_channels : public redis_slot_inbox {
 protected:
  redis_slot_channels() {
    options_ = redis::read_options(*holdfast::base::parse_url(cluster_.url())).value();
    options_.host = "127.0.0.1";
    options_.port = static_cast<std::uint16_t>(other_than(owner_of("m")).port());
    options_.clock = &clock_;
    inbox_.emplace(options_);
    EXPECT_TRUE(inbox_->open());
  }
  void waits_for(const std::string& name, const holdfast::store::owner_id& owner = {}) {
    inbox_->waits_for(name, owner, address_of(name), inbox_->confirmed());
  }
  redis::address address_of(const std::string& name) const {
    return {"127.0.0.1", static_cast<std::uint16_t>(owner_of(name).port())};
  }
  /// Waits on the inbox for a moment at a time, as often as necessary.
  void until(const char* what, const std::function<bool()>& is_so) {
    eventually(what, [&] {
      (void)inbox_->receive(clock_.now());
      return is_so();
    });
  }

  holdfast::testing::fake_clock clock_;
  redis::redis_options options_;
  std::optional<redis::slot_inbox> inbox_;
};

// A message that comes another way may not be the first with that secret; nor may one that comes
// before the node has confirmed the subscription.
TEST_F(redis_slot_channels, alone_deliver_secrets_to_subscribed_waiters) {
  const holdfast::store::owner_id owner{1, 2}, another{3, 4};
  const std::string own = "holdfast:inbox:" + inbox_->peer();
  const std::string of_the_name = "holdfast:inbox:{m}:" + inbox_->peer();
  const auto secret_of = [&](const std::string& command, const std::string& name,
                             const holdfast::store::owner_id& to) {
    owner_of("m").ask(
        {command, command == "PUBLISH" ? own : of_the_name,
         "passed " + to_string(to) + " 7 8 " + std::string(32, 'b') + " holdfast:{" + name + "}"});
    std::optional<holdfast::store::notification> got;
    eventually("a message by " + command + " about " + name,
               [&] { return (got = inbox_->receive(clock_.now())).has_value(); });
    return static_cast<bool>(got->secret);
  };
  const auto asked = [&] { waits_for("m", owner); };
  const auto listening = [&](std::uint64_t before) {
    until("a confirmation", [&] { return inbox_->confirmed() > before; });
  };
  asked();
  listening(0);
  EXPECT_FALSE(secret_of("SPUBLISH", "m", owner)) << "it asked before";
  inbox_->waits_for("m", owner, address_of("m"), 0);
  EXPECT_FALSE(secret_of("SPUBLISH", "m", owner)) << "and the answer came later";
  asked();
  EXPECT_FALSE(secret_of("PUBLISH", "m", owner)) << "over the bus";
  EXPECT_FALSE(secret_of("SPUBLISH", "another", owner));
  asked();
  EXPECT_FALSE(secret_of("SPUBLISH", "m", another)) << "it did not ask";
  EXPECT_TRUE(secret_of("SPUBLISH", "m", owner));
  asked();
  owner_of("m").ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  listening(1);
  EXPECT_FALSE(secret_of("SPUBLISH", "m", owner)) << "what came meanwhile was not heard";
}

TEST_F(redis_slot_channels, are_left_a_minute_after_the_last_waiter_for_the_name) {
  waits_for("old");
  waits_for("new");
  until("both", [&] { return !listened_to("old").empty() && !listened_to("new").empty(); });
  clock_.advance(40s);
  waits_for("new");
  clock_.advance(40s);
  until("one of them", [&] { return listened_to("old").empty(); });
  EXPECT_FALSE(listened_to("new").empty());
  clock_.advance(80s);
  until("none", [&] { return listened_to("new").empty(); });
}

TEST_F(redis_slot_channels, of_a_slot_that_left_and_returned_are_subscribed_again) {
  auto& home = owner_of("m");
  waits_for("m");
  until("the first time", [&] { return !listened_to("m").empty(); });
  cluster_.move(slot_of("m"), other_than(home));
  cluster_.move(slot_of("m"), home);
  ASSERT_EQ(listened_to("m"), "");
  until("the second time", [&] {
    waits_for("m");
    return !listened_to("m").empty();
  });
}

TEST_F(redis_slot_channels, of_a_vanished_node_are_subscribed_at_a_node_that_answers) {
  const auto nobody = static_cast<std::uint16_t>(harness::free_port());
  inbox_->waits_for("m", {}, {"127.0.0.1", nobody}, 0);
  (void)inbox_->receive(clock_.now());
  waits_for("m");
  until("the node that answers", [&] { return !listened_to("m").empty(); });
}

TEST_F(redis_slot_channels, that_were_subscribed_at_the_wrong_node_are_subscribed_again_elsewhere) {
  const auto wrong = static_cast<std::uint16_t>(other_than(owner_of("m")).port());
  inbox_->waits_for("m", {}, {"127.0.0.1", wrong}, 0);
  until("a connection there", [&] {
    return other_than(owner_of("m")).ask({"INFO", "errorstats"}).find("MOVED") != std::string::npos;
  });
  waits_for("m");
  until("the right one", [&] { return !listened_to("m").empty(); });
}

}  // namespace
