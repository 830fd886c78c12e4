#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "harness/eventually.hpp"
#include "harness/tcp.hpp"
#include "store/zookeeper/client.hpp"
#include "store/zookeeper/fixture.hpp"

// A session that the driver has given up, because the servers accept another session and not this
// one, and that gets in after all.
namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;

/// ZooKeeper's protocol, as far as a session without data needs it. Refuses one session for as long
/// as a test wants.
class choosy_server {
 public:
  int port() const { return server_.port(); }
  void refuse(std::uint64_t session) {
    const std::lock_guard guard{mutex_};
    refused_ = session;
  }
  bool has_closed(std::uint64_t session) {
    const std::lock_guard guard{mutex_};
    return closed_.contains(session);
  }

 private:
  static constexpr std::uint32_t lasts_ms = 600;
  static constexpr std::uint32_t close = static_cast<std::uint32_t>(-11);
  static constexpr std::uint32_t no_node = static_cast<std::uint32_t>(-101);
  /// What is kept in front of the bytes of an accepted connection: this, and its session. A request
  /// begins with the first byte of its length, which is 0.
  static constexpr char accepted = 'S';
  static constexpr std::size_t mark = 1 + sizeof(std::uint64_t);

  template <class Number>
  static std::string bytes(Number n) {
    std::string text(sizeof n, '\0');
    for (auto at = text.rbegin(); at != text.rend(); ++at, n >>= 4, n >>= 4)
      *at = static_cast<char>(n & 0xFF);
    return text;
  }
  template <class Number>
  static Number number(const std::string& text, std::size_t at) {
    Number n = 0;
    for (std::size_t i = at; i < at + sizeof n; ++i)
      n = n << 4 << 4 | static_cast<unsigned char>(text[i]);
    return n;
  }
  static std::string framed(const std::string& text) {
    return bytes(static_cast<std::uint32_t>(text.size())) + text;
  }

  std::optional<std::string> answer(std::string& heard) {
    const std::lock_guard guard{mutex_};
    std::string said;
    for (;;) {
      const bool begun = heard.starts_with(accepted);
      const std::size_t from = begun ? mark : 0;
      if (heard.size() < from + 4) return said;
      const auto size = number<std::uint32_t>(heard, from);
      if (heard.size() < from + 4 + size) return said;
      const std::string request = heard.substr(from + 4, size);
      heard.erase(from, 4 + size);
      auto session = begun ? number<std::uint64_t>(heard, 1) : number<std::uint64_t>(request, 16);
      if (session == 0) session = ++last_;
      if (session == refused_) return std::nullopt;
      said += framed(begun ? reply(request, session) : offer(session));
      if (!begun) heard.insert(0, accepted + bytes(session));
    }
  }
  // A version, the time, the session, and its password.
  static std::string offer(std::uint64_t session) {
    return bytes(std::uint32_t{0}) + bytes(lasts_ms) + bytes(session) + bytes(std::uint32_t{16}) +
           std::string(16, 'p') + '\0';
  }
  std::string reply(const std::string& request, std::uint64_t session) {
    const auto type = number<std::uint32_t>(request, 4);
    if (type == close) closed_.insert(session);
    constexpr std::uint32_t exists = 3;
    return request.substr(0, 4) + bytes(std::uint64_t{1}) +
           bytes(type == exists ? no_node : std::uint32_t{0});
  }

  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::uint64_t refused_ = 0;
  std::set<std::uint64_t> closed_;
  harness::fake_server server_{[this](std::string& heard) { return answer(heard); }};
};

// Otherwise its nodes would be holders, and waiters, for as long as its client lives.
TEST(zookeeper_given_up, session_that_gets_in_after_all_is_ended_at_once) {
  choosy_server servers;
  holdfast::store::zookeeper::zookeeper_options options;
  options.hosts = "127.0.0.1:" + std::to_string(servers.port());
  options.session = 600ms;
  options.clock = &holdfast::real_clock();
  const auto opened = holdfast::store::zookeeper::connection::open(options);
  ASSERT_TRUE(opened) << opened.error().what;
  const auto& former = *opened;
  ASSERT_TRUE(former->wait_connected(options.clock->now() + 1min));
  const auto id = former->session();
  servers.refuse(id);
  harness::eventually("it is given up", [&] { return former->over(); });
  EXPECT_FALSE(servers.has_closed(id));
  servers.refuse(0);
  harness::eventually("it is ended", [&] { return servers.has_closed(id); });
  EXPECT_TRUE(former->over());
}

}  // namespace
}  // namespace zookeeper_test
