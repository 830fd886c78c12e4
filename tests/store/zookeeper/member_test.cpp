#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <cstring>
#include <future>
#include <string>
#include <utility>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/tcp.hpp"
#include "store/zookeeper/fixture.hpp"
#include "store/zookeeper/silent_peer.hpp"
#include "store/zookeeper/zookeeper.hpp"

// Which member ZooKeeper's client talks to: how it finds one, and how it is made to leave one.
namespace {

std::atomic<int> lookups{0};
std::atomic<bool> name_server_is_away{false};

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  ++lookups;
  name_server_is_away.wait(true);
  return real(host, port, hints, found);
}

namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::zookeeper::peer_address;
using holdfast::store::zookeeper::shut_down_silent;

TEST(zookeeper_members, are_resolved_to_connect_and_not_for_each_request) {
  constexpr int rounds = 50;
  auto here = holdfast::open(calm_ensemble().url_at(calm_ensemble().port(0), fresh_base()));
  holdfast::fair_mutex lock{here, "job"};
  const int before = lookups;
  EXPECT_GT(before, 0);
  for (int i = 0; i < rounds; ++i) (void)lock.acquire();
  EXPECT_LT(lookups - before, rounds);
}

/// While this object lives, the name server is away.
class name_server_away {
 public:
  name_server_away() { name_server_is_away = true; }
  ~name_server_away() {
    name_server_is_away = false;
    name_server_is_away.notify_all();
  }
  name_server_away(const name_server_away&) = delete;
};

TEST(zookeeper_members, that_are_resolved_for_a_new_session_delay_no_query_about_the_former) {
  harness::fault_proxy proxy(calm_ensemble().port(0));
  holdfast::store::zookeeper::zookeeper_options options;
  options.hosts = "localhost:" + std::to_string(proxy.port());
  options.base = fresh_base();
  options.session = 4s;
  options.clock = &holdfast::real_clock();
  const auto store = open_zookeeper(options).value();
  holdfast::store::contender who;
  who.owner = {1, 2};
  const auto in = store->enter("job", who, {}, {}).value();
  std::atomic<bool> is_over{false};
  ASSERT_TRUE(store->read("job", in.node, [&] { is_over = true; }));
  proxy.with([](harness::relay& r) {
    r.refuse();
    r.cut();
  });
  const tree all(calm_ensemble().hosts());
  harness::eventually("its session has ended",
                      [&] { return all.children(options.base + "/job").empty(); });
  proxy.heal();
  harness::eventually("it knows", [&] { return is_over.load(); });
  EXPECT_EQ(store->safe_until(in.session), holdfast::boot_time{}) << "no other has begun yet";
  std::future<void> asks, looks;
  const name_server_away now;
  const int before = lookups;
  asks = harness::concurrently([&] {
    (void)store->contenders("job", holdfast::store::contender_store::as_of::latest, nullptr);
  });
  harness::eventually("a name is looked up", [&] { return lookups > before; });
  looks = harness::concurrently([&] { (void)store->safe_until(in.session); });
  harness::eventually("it is told",
                      [&] { return looks.wait_for(0s) == std::future_status::ready; });
}

peer_address this_machine(int port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<std::uint16_t>(port));
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer_address a;
  std::memcpy(&a.bytes, &in, sizeof in);
  a.size = sizeof in;
  return a;
}

TEST(zookeeper_members, that_do_not_answer_a_question_are_left_and_answering_ones_are_not) {
  const auto answers_if = [](std::string& heard) -> std::optional<std::string> {
    const bool asks = std::exchange(heard, {}).starts_with('?');
    return asks ? "!" : "";
  };
  harness::fake_server member(answers_if), other(answers_if);
  harness::tcp_client unanswered(member.port()), answered(member.port()), elsewhere(other.port());
  const auto at = this_machine(member.port());
  harness::eventually("the silence is noticed", [&] {
    answered.say("?");
    EXPECT_EQ(answered.hear(1), "!");
    elsewhere.say(".");
    unanswered.say(".");
    return shut_down_silent(at, 1ms, {}) == 1;
  });
  EXPECT_EQ(unanswered.hear(1), "");
  answered.say("?");
  EXPECT_EQ(answered.hear(1), "!");
  elsewhere.say("?");
  EXPECT_EQ(elsewhere.hear(1), "!");
}

// As in a child of fork(), which has its parent's connections, too.
TEST(zookeeper_members, that_are_silent_keep_the_connections_of_a_parent) {
  harness::fake_server member([](std::string& heard) { return heard.clear(), std::string(); });
  harness::tcp_client of_a_parent(member.port());
  const auto before = holdfast::store::zookeeper::sockets_of_others();
  harness::tcp_client own(member.port());
  const auto at = this_machine(member.port());
  harness::eventually("the silence is noticed", [&] {
    of_a_parent.say(".");
    own.say(".");
    return shut_down_silent(at, 1ms, before) > 0;
  });
  EXPECT_EQ(own.hear(1), "");
  EXPECT_EQ(shut_down_silent(at, 1ms, before), 0);
  of_a_parent.say(".");
  harness::eventually("the other was left as it was",
                      [&] { return shut_down_silent(at, 1ms, {}) == 1; });
}

TEST(zookeeper_members, that_were_silent_for_a_shorter_time_are_awaited) {
  harness::fake_server member([](std::string& heard) { return heard.clear(), std::string(); });
  harness::tcp_client asks(member.port());
  asks.say(".");
  EXPECT_EQ(shut_down_silent(this_machine(member.port()), 1h, {}), 0);
}

}  // namespace
}  // namespace zookeeper_test
