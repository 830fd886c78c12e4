#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "harness/eventually.hpp"
#include "harness/tcp.hpp"
#include "store/zookeeper/fixture.hpp"
#include "store/zookeeper/silent_peer.hpp"

// Which member ZooKeeper's client talks to: how it finds one, and how it is made to leave one.
namespace {

std::atomic<int> lookups{0};

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  ++lookups;
  return real(host, port, hints, found);
}

namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::zookeeper::peer_address;
using holdfast::store::zookeeper::shut_down_silent;

TEST(zookeeper_members, are_looked_up_to_connect_and_not_for_each_request) {
  constexpr int rounds = 50;
  auto here = holdfast::open(calm_ensemble().url_at(calm_ensemble().port(0), fresh_base()));
  holdfast::fair_mutex lock{here, "job"};
  const int before = lookups;
  EXPECT_GT(before, 0);
  for (int i = 0; i < rounds; ++i) (void)lock.acquire();
  EXPECT_LT(lookups - before, rounds);
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

TEST(zookeeper_members, that_say_nothing_to_a_question_are_left_and_those_that_answer_are_not) {
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
    return shut_down_silent(at, 1ms) == 1;
  });
  EXPECT_EQ(unanswered.hear(1), "");
  answered.say("?");
  EXPECT_EQ(answered.hear(1), "!");
  elsewhere.say("?");
  EXPECT_EQ(elsewhere.hear(1), "!");
}

TEST(zookeeper_members, that_were_silent_for_less_long_are_waited_for) {
  harness::fake_server member([](std::string& heard) { return heard.clear(), std::string(); });
  harness::tcp_client asks(member.port());
  asks.say(".");
  EXPECT_EQ(shut_down_silent(this_machine(member.port()), 1h), 0);
}

}  // namespace
}  // namespace zookeeper_test
