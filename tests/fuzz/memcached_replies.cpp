#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <future>
#include <string>

#include "fuzz/input.hpp"
#include "store/memcached/keys.hpp"
#include "store/memcached/link.hpp"
#include "store/memcached/value.hpp"

// What a memcached server answers: to the greeting (if the first byte says so), to meta commands,
// and to a listing; and what it says stands in its keys.
namespace {

namespace memcached = holdfast::store::memcached;

/// Sends the same bytes to each client that connects, and reads nothing. Listens at 127.0.0.N,
/// because one pair of addresses has ports for only some ten thousand connections a minute.
class talker {
 public:
  explicit talker(unsigned n)
      : host_("127.0.0." + std::to_string(n)),
        listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + n);
    socklen_t size = sizeof any;
    fuzz::require(::bind(listening_, reinterpret_cast<sockaddr*>(&any), size) == 0);
    fuzz::require(::listen(listening_, 8) == 0);
    fuzz::require(::getsockname(listening_, reinterpret_cast<sockaddr*>(&any), &size) == 0);
    port_ = ntohs(any.sin_port);
  }
  memcached::address where() const { return {host_, port_}; }
  void say(std::string_view bytes) const {
    const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    while (!bytes.empty()) {
      const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) break;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    ::shutdown(fd, SHUT_WR);
    char heard[4096];
    while (::recv(fd, heard, sizeof heard, 0) > 0) {
    }
    ::close(fd);
  }

 private:
  const std::string host_;
  const int listening_;
  std::uint16_t port_ = 0;
};

void ask(memcached::link& over) {
  const auto replies = over.ask("mg a\r\nmg b\r\n", 2);
  if (!replies) return;
  for (const auto& r : *replies) {
    for (const char flag : {'c', 't', 's'}) (void)r.number(flag);
    (void)memcached::read_value(r.value);
    (void)memcached::server_says(r, {"server", 1});
  }
  (void)over.list("lru_crawler metadump all\r\n", [](std::string_view line) {
    (void)memcached::name_of_key("holdfast", memcached::unescape(line));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::deque<talker> servers;
  static unsigned number = 0;
  number = number % 100 + 1;
  if (servers.size() < number) servers.emplace_back(number);
  const talker& server = servers[number - 1];
  const auto bytes = fuzz::text_of(data, size);
  (void)memcached::read_value(bytes);
  (void)memcached::name_of_key("holdfast", memcached::unescape(bytes));
  const bool greets = size > 0 && data[0] == '!';
  const std::string said = greets ? "MN\r\nSTAT pid 7\r\nSTAT uptime 10\r\nSTAT time 1700000000\r\n"
                                    "STAT version 1.6.18\r\nEND\r\n" +
                                        std::string(bytes.substr(1))
                                  : std::string(bytes);
  const auto speaks = std::async(std::launch::async, [&] { server.say(said); });
  memcached::memcached_options o;
  const auto made = memcached::link::connect(server.where(), o);
  if (made) ask(**made);
  return 0;
}
