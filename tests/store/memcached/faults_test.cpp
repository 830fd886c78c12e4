#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "harness/caught_signals.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/hung_store.hpp"
#include "harness/opened_late.hpp"
#include "harness/tcp.hpp"
#include "harness/wire_cost.hpp"
#include "store/memcached/fixture.hpp"
#include "store/memcached/keys.hpp"
#include "store/memcached/link.hpp"
#include "store/memcached/memcached.hpp"

namespace memcached_test {
namespace {

/// Other programs' cached pages, of a lock's size: ten times as many as fit.
void fill(const harness::memcached_server& server, std::size_t page_bytes) {
  const std::string page(page_bytes, 'x');
  const std::string size = std::to_string(page_bytes);
  for (int round = 0; round < 20; ++round) {
    std::string lines;
    for (int i = 0; i < 2'500; ++i) {
      lines += "ms page:" + std::to_string(1'000'000'000 + round * 2'500 + i) + " " + size +
               " q\r\n" + page + "\r\n";
    }
    (void)server.ask(lines);
  }
}

TEST(memcached_faults, a_lock_that_the_server_evicted_is_known_as_lost_at_the_next_renewal) {
  const harness::memcached_server small({"-m", "1", "-I", "256k", "-o", "slab_chunk_max=131072"});
  const auto session = holdfast::open(small.url());
  lease held = mutex(session, "orders", {.lease = 6s}).acquire();
  const auto stored = small.ask("mg holdfast:orders s\r\n");  // "HD s123"
  harness::eventually("the loss is told", [&] {
    fill(small, std::stoul(stored.substr(4)));
    return held.lost().stop_requested();
  });
  EXPECT_EQ(outcome_of([&] { held.check(); }).reason, errc::lost);
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
}

TEST(memcached_faults, a_full_server_that_does_not_evict_grants_no_lock_and_reports_it) {
  const harness::memcached_server full(
      {"-m", "1", "-I", "256k", "-o", "slab_chunk_max=131072", "-M"});
  const auto session = holdfast::open(full.url());
  fill(full, 200);
  fill(full, 100);
  const auto refused = outcome_of([&] { mutex(session, "orders").lock(); });
  EXPECT_EQ(refused.reason, errc::no_space) << refused.text;
}

// Without room for the new value, `ms` would drop the old one.
TEST(memcached_faults, a_full_server_keeps_held_locks) {
  const harness::memcached_server full(
      {"-m", "1", "-I", "256k", "-o", "slab_chunk_max=131072", "-M"});
  const auto session = holdfast::open(full.url());
  lease held = mutex(session, "orders", {.lease = 60s}).acquire();
  fill(full, 200);
  fill(full, 100);
  EXPECT_FALSE(mutex(holdfast::open(full.url()), "orders").try_acquire());
  EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::no_space);
  EXPECT_FALSE(mutex(holdfast::open(full.url()), "orders").try_acquire());
  EXPECT_EQ(held.release(), std::error_code());
}

TEST_F(memcached_store, after_a_restart_the_holder_reports_the_loss_and_the_next_acquires) {
  const auto session = open();
  const lease held = mutex(session, "orders", {.lease = 3s}).acquire();
  server_.kill();
  server_.start();
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  EXPECT_NO_THROW(mutex(session, "orders").lock());
}

TEST_F(memcached_store, a_store_is_unavailable_during_an_outage_and_works_afterwards) {
  const auto session = open({}, {.store_timeout = 50ms});
  mutex orders(session, "orders");
  orders.lock();
  orders.unlock();
  server_.kill();
  EXPECT_EQ(outcome_of([&] { orders.lock(); }).reason, errc::unavailable);
  const auto late = harness::opened_before([&] { server_.start(); }, server_.url());
  EXPECT_TRUE(orders.try_lock_for(60s));
  orders.unlock();
}

TEST_F(memcached_store, a_server_that_hangs_costs_the_time_out_and_leaves_nothing_behind) {
  const auto session = open("?command_timeout=500ms", {.store_timeout = 50ms});
  mutex orders(session, "orders");
  orders.lock();
  orders.unlock();
  server_.stop();
  const auto hung = outcome_of([&] { orders.lock(); });
  EXPECT_EQ(hung.reason, errc::unavailable);
  EXPECT_TRUE(contains(hung.text, server_.host())) << hung.text;
  server_.resume();
  const auto other = open();
  harness::eventually("what was got late is given back",
                      [&] { return mutex(other, "orders").try_lock(); });
}

TEST_F(memcached_store, calls_end_at_their_limit_while_the_server_hangs) {
  harness::fault_proxy proxy(server_.port());
  const auto url = [](int port) { return "memcached://127.0.0.1:" + std::to_string(port); };
  harness::calls_end_at_their_limit_while_it_hangs(
      harness::hang(proxy), url(proxy.port()) + "?connect_timeout=3600s&command_timeout=3600s",
      url(server_.port()));
}

TEST_F(memcached_store, tries_time_out_while_the_server_hangs) {
  harness::fault_proxy proxy(server_.port());
  harness::tries_time_out_while_it_hangs(
      harness::hang(proxy),
      "memcached://127.0.0.1:" + std::to_string(proxy.port()) + "?command_timeout=300ms");
}

// A renewal asks name by name: the others would wait for all of its time-outs.
TEST(memcached_two_servers, of_which_one_hangs_keep_the_locks_at_the_other) {
  const harness::memcached_server sick, well;
  harness::fault_proxy proxy(sick.port());
  const auto session =
      holdfast::open("memcached://127.0.0.1:" + std::to_string(proxy.port()) +
                         ",127.0.0.1:" + std::to_string(well.port()) + "?command_timeout=500ms",
                     {.lease = 4s});
  std::vector<lease> at_sick;
  lease at_well;
  for (int i = 0; at_sick.size() < 10 || !at_well; ++i) {
    const std::string name = "n" + std::to_string(i);
    lease one = mutex(session, name).acquire();
    if (well.ask("mg holdfast:" + name + " v\r\n").starts_with("VA"))
      at_well = std::move(one);
    else
      at_sick.push_back(std::move(one));
  }
  proxy.with([](harness::relay& r) { r.stall(harness::way::down); });
  harness::eventually("those at the one are lost", [&] {
    return std::all_of(at_sick.begin(), at_sick.end(),
                       [](const lease& l) { return l.state() == holdfast::lease_state::lost; });
  });
  EXPECT_NE(at_well.state(), holdfast::lease_state::lost);
  proxy.heal();
}

// A silent server delays no renewal at another, and several delay no more than one.
TEST(memcached_two_servers, get_their_renewals_at_the_same_time) {
  std::mutex mutex_;
  std::condition_variable changed;
  int asked = 0;
  const harness::memcached_server one, other;
  const auto before = [&](const harness::memcached_server& to) {
    return [&](std::string& heard) -> std::optional<std::string> {
      const std::string said = std::exchange(heard, {});
      if (said.starts_with("cas ")) {
        std::unique_lock lock{mutex_};
        ++asked;
        changed.notify_all();
        while (asked < 2) changed.wait(lock);
      }
      return said.starts_with("mn") ? "MN\r\n" : to.ask(said);
    };
  };
  const harness::fake_server first(before(one)), second(before(other));
  using namespace holdfast::store;
  memcached::memcached_options o;
  for (const auto* s : {&first, &second})
    o.servers.push_back({"127.0.0.1", static_cast<std::uint16_t>(s->port())});
  const auto store = memcached::open_memcached(o);
  ASSERT_TRUE(store) << store.error().what;
  std::array<std::string, 2> names{"a", "a"};
  for (std::size_t i = 0; i < 2; ++i) {
    while (memcached::server_of(names[i], o.servers) != i) names[i] += 'a';
  }
  std::vector<slot_store::extension> all;
  for (const auto& name : names) {
    slot_entry who;
    who.owner = {1, 2};
    ASSERT_TRUE((*store)->add({name}, who, 60'000'000));
    all.push_back({{name}, who, 60'000'000});
  }
  for (const auto& reply : (*store)->extend(all)) {
    ASSERT_TRUE(reply) << reply.error().what;
    EXPECT_EQ(reply->outcome, slot_outcome::done);
  }
}

// A thread of its own asks the silent server; after an answer the server is asked as before.
TEST(memcached_two_servers, of_which_one_fell_silent_renew_at_the_other_without_waiting_for_it) {
  const harness::memcached_server sick, well;
  harness::fault_proxy proxy(sick.port());
  using namespace holdfast::store;
  memcached::memcached_options o;
  for (const int port : {proxy.port(), well.port()})
    o.servers.push_back({"127.0.0.1", static_cast<std::uint16_t>(port)});
  o.command_timeout = o.connect_timeout = 1500ms;  // of which a loaded machine leaves enough
  const auto store = memcached::open_memcached(o).value();
  std::array<std::string, 2> names{"a", "a"};
  std::vector<slot_store::extension> all;
  for (std::size_t i = 0; i < 2; ++i) {
    while (memcached::server_of(names[i], o.servers) != i) names[i] += 'a';
    slot_entry who;
    who.owner = {1, 2};
    ASSERT_TRUE(store->add({names[i]}, who, 60'000'000));
    all.push_back({{names[i]}, who, 60'000'000});
  }
  proxy.with([](harness::relay& r) { r.stall(harness::way::down); });
  const auto first = store->extend(all);
  EXPECT_FALSE(first[0]);
  EXPECT_TRUE(first[1]);
  const auto second = store->extend(all);
  ASSERT_FALSE(second[0]);
  EXPECT_TRUE(contains(second[0].error().what, "another renewal")) << second[0].error().what;
  EXPECT_TRUE(second[1]);
  proxy.heal();
  harness::eventually("it is asked again", [&] { return store->extend(all)[0].ok(); });
}

// Closing the session need not wait for a server for which no caller waits.
TEST(memcached_two_servers, of_which_one_is_silent_are_left_without_waiting_for_it) {
  std::mutex mutex_;
  std::condition_variable changed;
  bool asked = false;
  const harness::fake_server silent([&](std::string& heard) -> std::optional<std::string> {
    heard.clear();
    const std::lock_guard guard{mutex_};
    asked = true;
    changed.notify_all();
    return std::string();
  });
  holdfast::store::memcached::memcached_options o;
  o.command_timeout = o.connect_timeout = 1h;
  {
    holdfast::store::memcached::server one({"127.0.0.1", static_cast<std::uint16_t>(silent.port())},
                                           o);
    one.fell_silent();
    std::unique_lock lock{mutex_};
    while (!asked) changed.wait(lock);
    EXPECT_TRUE(one.is_silent());
  }
}

TEST(memcached_two_servers, of_which_one_is_away_can_be_opened_and_give_the_names_of_the_other) {
  harness::memcached_server away, there;
  const std::string url = "memcached://" + away.host() + "," + there.host();
  const auto name_at = [&](const harness::memcached_server& server) {
    using namespace holdfast::store::memcached;
    const auto port = static_cast<std::uint16_t>(server.port());
    for (int i = 0;; ++i) {
      const std::vector<address> all{{"127.0.0.1", static_cast<std::uint16_t>(away.port())},
                                     {"127.0.0.1", static_cast<std::uint16_t>(there.port())}};
      if (all[server_of(std::to_string(i), all)].port == port) return std::to_string(i);
    }
  };
  away.kill();
  const auto session = holdfast::open(url, {.store_timeout = 0ms});
  const lease held = mutex(session, name_at(there)).acquire();
  mutex cannot(session, name_at(away));
  const auto refused = outcome_of([&] { (void)cannot.try_acquire(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, away.host())) << refused.text;
  const auto unlisted = outcome_of([&] { (void)session.names(); });
  EXPECT_EQ(unlisted.reason, errc::unavailable);
  EXPECT_TRUE(contains(unlisted.text, away.host())) << unlisted.text;
  away.start();
  EXPECT_TRUE(cannot.try_acquire());
  EXPECT_EQ(session.names(), std::vector{held.name()});
  away.kill();
  there.kill();
  EXPECT_EQ(outcome_of([&] { (void)holdfast::open(url, {.store_timeout = 0ms}); }).reason,
            errc::unavailable);
}

TEST(memcached_two_servers, of_which_one_is_no_memcached_are_refused_at_once) {
  const harness::memcached_server one;
  const harness::fake_server other([](std::string& heard) -> std::optional<std::string> {
    heard.clear();
    return "-ERR unknown command 'mn'\r\n";
  });
  const auto refused = harness::outcome_of_opening("memcached://" + one.host() +
                                                   ",127.0.0.1:" + std::to_string(other.port()));
  EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
}

// The server was replaced by one that requires a login.
TEST(memcached_faults,
     a_lock_whose_answer_was_lost_is_in_doubt_though_the_next_connection_is_refused) {
  std::atomic<int> asked{0};
  const harness::fake_server server([&](std::string& heard) -> std::optional<std::string> {
    const auto said = std::exchange(heard, {});
    if (!said.starts_with("mn") && !said.starts_with("stats")) return ++asked, std::nullopt;
    if (asked > 0) return "CLIENT_ERROR unauthenticated\r\n";
    if (said.starts_with("mn")) return "MN\r\n";
    return "STAT pid 1\r\nSTAT uptime 100\r\nSTAT time 1700000000\r\nEND\r\n";
  });
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(server.port()));
  const auto o = outcome_of([&] { (void)mutex(session, "orders").try_acquire(); });
  EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
  EXPECT_TRUE(o.unknown) << o.text;
  EXPECT_EQ(asked, 1);
}

// As behind a proxy that reads from one server and writes to another.
TEST(memcached_faults, a_release_ends_although_the_item_is_another_one_each_time) {
  std::string value;
  std::atomic<int> removed{0};
  const harness::fake_server server([&](std::string& heard) -> std::optional<std::string> {
    const auto said = std::exchange(heard, {});
    const auto item = [&] {
      return "VA " + std::to_string(value.size()) + " t30 c5\r\n" + value + "\r\n";
    };
    if (said.starts_with("mn")) return "MN\r\n";
    if (said.starts_with("stats"))
      return "STAT pid 1\r\nSTAT uptime 100\r\nSTAT time 1700000000\r\nEND\r\n";
    if (said.starts_with("md")) return ++removed < 500'000 ? "EX\r\n" : "HD\r\n";
    if (said.starts_with("mg")) return item();
    value = said.substr(said.find('\n') + 1);
    value.erase(value.find('\r'));
    return "STORED\r\n" + item() + "VA 1\r\n7\r\n";
  });
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(server.port()) +
                                      "?command_timeout=1s");
  lease held = mutex(session, "orders").acquire();
  EXPECT_EQ(held.release(), errc::unavailable);
}

TEST(memcached_opening, a_server_that_requires_a_login_is_reported) {
  const harness::fake_server server([](std::string& heard) {
    heard.clear();
    return std::optional<std::string>("CLIENT_ERROR unauthenticated\r\n");
  });
  const auto refused =
      harness::outcome_of_opening("memcached://127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
  EXPECT_TRUE(contains(refused.text, "login")) << refused.text;
}

// As by a renewal whose answer was given up, and which the server carries out late: the item is the
// same, with another unique number.
TEST_F(memcached_store, an_extension_overtaken_by_another_of_its_holder_is_no_loss) {
  auto s = open();
  auto held = mutex(s, "orders").acquire();
  std::atomic<bool> over{false};
  std::thread late([&] {
    while (!over) server_.ask("append holdfast:orders 0 0 0\r\n\r\n");
  });
  for (int i = 0; i < 500 && held.state() != holdfast::lease_state::lost; ++i) {
    EXPECT_NO_THROW(held.extend());
  }
  over = true;
  late.join();
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
}

TEST_F(memcached_store, a_free_lock_costs_one_round_trip_to_acquire_and_one_to_release) {
  harness::fault_proxy proxy(server_.port());
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(proxy.port()));
  EXPECT_EQ(harness::round_trips_of_a_free_lock(proxy, session), 2U);
}

TEST_F(memcached_store, a_connection_that_was_cut_is_made_again_and_the_hold_stays) {
  harness::fault_proxy proxy(server_.port());
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(proxy.port()));
  lease held = mutex(session, "orders").acquire();
  proxy.cut();
  proxy.heal();
  EXPECT_NO_THROW(held.extend());
  proxy.cut();
  proxy.heal();
  EXPECT_FALSE(held.release());
  EXPECT_EQ(value(), "");
}

// A holder that is gone may have released by itself: no store can tell that its lock was taken
// away.
TEST_F(memcached_store, a_holder_that_may_have_been_evicted_is_neither_counted_nor_left_out) {
  harness::fault_proxy proxy(server_.port());
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(proxy.port()));
  const auto of_another = open();
  const lease held = mutex(of_another, "orders", {.lease = 60s}).acquire();
  // Two reads as in show(), one of the key that is to be removed, and then the answer.
  const auto before = proxy.count().down;
  EXPECT_EQ(session.show("orders").holders.size(), 1U);
  const auto looked = proxy.count().down - before;
  const auto read = server_.ask("mg holdfast:orders v t c\r\n").size();
  proxy.with([&](harness::relay& r) { r.cut_after(harness::way::down, 2 * looked + read + 1); });
  const auto unheard = outcome_of([&] { (void)session.force_release("orders"); });
  EXPECT_EQ(unheard.reason, errc::unavailable) << unheard.text;
  EXPECT_TRUE(unheard.unknown) << unheard.text;
  EXPECT_EQ(value(), "");
  EXPECT_EQ(session.force_release("orders"), 0U) << "the next call knows that nobody is there";
}

TEST_F(memcached_store, a_server_of_another_kind_is_refused_at_once) {
  const harness::fake_server redis([](std::string& heard) -> std::optional<std::string> {
    heard.clear();
    return "-ERR unknown command 'mn'\r\n";
  });
  const auto wrong =
      harness::outcome_of_opening("memcached://127.0.0.1:" + std::to_string(redis.port()));
  EXPECT_EQ(wrong.reason, errc::unsupported);
  EXPECT_TRUE(contains(wrong.text, "unknown command")) << wrong.text;
  server_.kill();
  EXPECT_EQ(harness::outcome_of_opening(server_.url()).reason, errc::unavailable);
}

// All its items have the number 0: a release would remove the lock of the next holder.
TEST(memcached_opening, a_server_whose_items_have_no_numbers_is_refused) {
  const harness::memcached_server without({"-C"});
  const auto refused = harness::outcome_of_opening(without.url());
  EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
  EXPECT_TRUE(contains(refused.text, "-C")) << refused.text;
}

TEST_F(memcached_store, a_server_without_free_connections_is_unavailable_with_the_reason) {
  const harness::fake_server full([](std::string& heard) -> std::optional<std::string> {
    heard.clear();
    return "ERROR Too many open connections\r\n";
  });
  const auto url = "memcached://127.0.0.1:" + std::to_string(full.port());
  const auto wrong = outcome_of([&] { (void)holdfast::open(url, {.store_timeout = 0ms}); });
  EXPECT_EQ(wrong.reason, errc::unavailable) << wrong.text;
  EXPECT_TRUE(contains(wrong.text, "raise its limit (memcached -c)")) << wrong.text;
}

TEST_F(memcached_store, a_malformed_answer_is_an_error_and_closes_the_connection) {
  int conversations = 0;
  const harness::fake_server odd([&](std::string& heard) -> std::optional<std::string> {
    const bool greeting = heard.starts_with("mn");
    const bool asks_time = heard.starts_with("stats");
    heard.clear();
    if (greeting) return "MN\r\n";
    if (asks_time) return "STAT time 1000\r\nEND\r\n";
    ++conversations;
    return "VA 99999999999\r\n";
  });
  const auto session =
      holdfast::open("memcached://127.0.0.1:" + std::to_string(odd.port()), {.store_timeout = 0ms});
  EXPECT_EQ(outcome_of([&] { session.show("orders"); }).reason, errc::unavailable);
  EXPECT_GT(conversations, 0);
}

// The server has stored the lock, and has no memory for the second answer.
TEST_F(memcached_store, a_lock_that_was_stored_unseen_is_in_doubt_and_released) {
  std::atomic<bool> without_memory{false};
  const harness::fake_server relay([&](std::string& heard) -> std::optional<std::string> {
    const std::string asked = std::exchange(heard, {});
    const auto looks = asked.rfind("mg "), counts = asked.rfind("ma ");
    if (!without_memory || !asked.starts_with("add ") || looks == asked.npos || counts < looks)
      return server_.ask(asked);
    without_memory = false;
    return server_.ask(asked.substr(0, looks)) +
           "SERVER_ERROR out of memory writing get response\r\n" +
           server_.ask(asked.substr(counts));
  });
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(relay.port()));
  without_memory = true;
  const auto o = outcome_of([&] { (void)mutex(session, "orders", {.lease = 24h}).try_acquire(); });
  EXPECT_EQ(o.reason, errc::no_space) << o.text;
  EXPECT_TRUE(o.unknown) << o.text;
  harness::eventually("it is given back", [&] { return value().empty(); });
}

// If the server sends an extra line, for whatever reason, no later request may take it for its own
// answer.
TEST_F(memcached_store, a_connection_with_an_unexpected_answer_is_not_used_again) {
  std::atomic<bool> more{false};
  const harness::fake_server relay([&](std::string& heard) -> std::optional<std::string> {
    const std::string asked = std::exchange(heard, {});
    const bool once = asked.starts_with("add ") && more.exchange(false);
    return (once ? "SERVER_ERROR out of memory storing object\r\n" : "") + server_.ask(asked);
  });
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(relay.port()));
  more = true;
  EXPECT_EQ(outcome_of([&] { (void)mutex(session, "orders").try_acquire().value(); }).text, "");
  EXPECT_FALSE(more);
}

// The lock is evicted, and acquired by another program, between the two commands of one round trip.
TEST_F(memcached_store, a_lock_taken_by_another_after_our_renewal_is_not_ours) {
  std::atomic<bool> in_between{false};
  const harness::fake_server relay([&](std::string& heard) -> std::optional<std::string> {
    const std::string asked = std::exchange(heard, {});
    const auto looks = asked.rfind("mg ");
    if (!in_between || !asked.starts_with("cas ") || looks == asked.npos) return server_.ask(asked);
    const std::string written = server_.ask(asked.substr(0, looks));
    put(foreign_record());
    return written + server_.ask(asked.substr(looks));
  });
  const auto session = holdfast::open("memcached://127.0.0.1:" + std::to_string(relay.port()));
  lease held = mutex(session, "orders", {.lease = 60s}).acquire();
  in_between = true;
  EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
  in_between = false;
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_EQ(value(), foreign_record());
}

TEST_F(memcached_store, two_servers_share_the_names_in_any_order_of_the_url) {
  const harness::memcached_server second;
  const auto one = holdfast::open("memcached://" + server_.host() + "," + second.host());
  const auto other = holdfast::open("memcached://" + second.host() + "," + server_.host());
  std::vector<lease> held;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "n" + std::to_string(100 + i);
    held.push_back(mutex(one, name).acquire());
    EXPECT_FALSE(mutex(other, name).try_lock()) << name;
  }
  int here = 0, there = 0;
  for (const auto& l : held) {
    here += server_.ask("mg holdfast:" + l.name() + "\r\n") == "HD\r\n" ? 1 : 0;
    there += second.ask("mg holdfast:" + l.name() + "\r\n") == "HD\r\n" ? 1 : 0;
  }
  EXPECT_EQ(here + there, 40);
  EXPECT_GT(here, 5);
  EXPECT_GT(there, 5);
}

// The kernel restarts a time-out after a signal.
TEST(memcached_connections, end_on_time_at_a_silent_server_despite_signals) {
  const harness::memcached_server server;
  harness::fault_proxy network(server.port());
  namespace store = holdfast::store::memcached;
  store::memcached_options o;
  o.command_timeout = 1s;
  const auto to =
      store::link::connect({"127.0.0.1", static_cast<std::uint16_t>(network.port())}, o);
  ASSERT_TRUE(to) << to.error().what;
  network.with([](holdfast::faultproxy::relay& r) { r.stall(holdfast::faultproxy::way::up); });
  const harness::caught_signals meanwhile;
  const std::string more_than_the_network_holds(std::size_t{64} << 20, 'x');
  EXPECT_FALSE((*to)->ask(more_than_the_network_holds, 1));
  EXPECT_TRUE((*to)->hangs());
}

}  // namespace
}  // namespace memcached_test
