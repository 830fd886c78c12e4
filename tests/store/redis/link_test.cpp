#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/store_url.hpp"
#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "harness/seed.hpp"
#include "store/redis/link.hpp"
#include "store/redis/options.hpp"

// Many threads on one connection, also while it breaks under them.
namespace {

using namespace std::chrono_literals;

constexpr int threads = 16;

struct shared_counter {
  int value = 0;  // not atomic: only the lock protects it
};

TEST(redis_link, many_threads_share_one_connection) {
  const harness::redis_server server;
  auto s = holdfast::open(server.url());
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      holdfast::mutex m{s, "own" + std::to_string(t)};
      for (int i = 0; i < 200; ++i) m.lock(), m.unlock();
    });
  }
  for (auto& t : crew) t.join();
  // This connection, the session's commands, and its notifications.
  const auto clients = server.ask({"CLIENT", "LIST"});
  EXPECT_EQ(std::count(clients.begin(), clients.end(), '\n'), 3) << clients;
}

TEST(redis_link, takes_no_late_answer_for_that_to_another_request) {
  namespace redis = holdfast::store::redis;
  std::atomic<bool> in_time{false};
  const harness::fake_redis server([&](const harness::fake_redis::words& w) -> std::string {
    if (w[0] == "INFO") harness::eventually("it is too late", [&] { return !in_time; });
    return w[0] == "PING" ? "+PONG\r\n" : "";
  });
  const auto url = holdfast::base::parse_url(server.url("?connect_timeout=100ms"));
  const redis::redis_options o = redis::read_options(*url).value();
  redis::link link{o};
  in_time = true;
  EXPECT_FALSE(link.open());
  in_time = false;
  std::string bytes;
  redis::append_command(bytes, {"PING"});
  const redis::message ping{bytes};
  // On a busy machine it may take longer than that to connect again.
  harness::eventually("an answer", [&] {
    const auto got = link.ask({&ping, 1}, holdfast::boot_clock::now() + 60s);
    EXPECT_TRUE(!got || got->replies.front().text == "PONG");
    return got.ok();
  });
}

TEST(redis_link, requests_made_close_together_share_system_calls) {
  const harness::redis_server server;
  auto s = holdfast::open(server.url());
  const auto reads_before = server.ask({"INFO", "stats"});
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      holdfast::mutex m{s, "own" + std::to_string(t)};
      for (int i = 0; i < 300; ++i) m.lock(), m.unlock();
    });
  }
  for (auto& t : crew) t.join();
  const auto number = [](const std::string& info, const std::string& field) {
    return std::stoll(info.substr(info.find(field + ":") + field.size() + 1));
  };
  const auto after = server.ask({"INFO", "stats"});
  const auto reads =
      number(after, "total_reads_processed") - number(reads_before, "total_reads_processed");
  EXPECT_LT(reads, threads * 300 * 2) << "each request was read by itself";
}

TEST(redis_link, no_waiter_is_stuck_and_nothing_overlaps_while_connections_are_cut) {
  const harness::redis_server server;
  std::array<holdfast::session, 2> sessions{holdfast::open(server.url()),
                                            holdfast::open(server.tcp_url())};
  std::array<shared_counter, 3> counters;
  std::atomic<int> acquired{0};
  constexpr int rounds = 20;
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      const auto which = static_cast<std::size_t>(t) % counters.size();
      holdfast::mutex m{sessions[static_cast<std::size_t>(t) % 2],
                        "shared" + std::to_string(which)};
      for (int i = 0; i < rounds; ++i) {
        auto held = m.acquire();
        ++counters[which].value;
        (void)held.release();  // may report that nobody knows whether it was carried out
        ++acquired;
        acquired.notify_one();
      }
    });
  }
  harness::random dice(21);
  // Some progress between two cuts: without it, a lack of progress would not be the threads' fault.
  for (int seen = 0; seen < threads * rounds; seen = acquired) {
    server.ask({"CLIENT", "KILL", "TYPE", dice.one_in(3) ? "pubsub" : "normal"});
    acquired.wait(seen);
  }
  for (auto& t : crew) t.join();
  int sum = 0;
  for (const auto& c : counters) sum += c.value;
  EXPECT_EQ(sum, threads * rounds);
}

}  // namespace
