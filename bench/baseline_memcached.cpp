#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "bench/subject.hpp"

// The lock that people write by hand over a socket: add the key if it does not exist, retry every
// millisecond, and remove exactly the added value. No fence, no renewal, no time-out.
namespace bench {
namespace {

bool is_memcached(std::string_view url) { return scheme_of(url) == "memcached"; }

/// A blocking connection to the first server of the URL.
class line_client {
 public:
  explicit line_client(const std::string& url) {
    std::string rest = url.substr(url.find("//") + 2);
    rest = rest.substr(0, rest.find_first_of("/,?"));
    const auto colon = rest.rfind(':');
    const std::string port = colon == rest.npos ? "11211" : rest.substr(colon + 1);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(rest.substr(0, colon).c_str(), port.c_str(), &hints, &found) == 0) {
      fd_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      connected_ = ::connect(fd_, found->ai_addr, found->ai_addrlen) == 0;
      ::freeaddrinfo(found);
    }
    if (!connected_) throw std::runtime_error{"no connection to " + url};
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~line_client() { ::close(fd_); }
  line_client(const line_client&) = delete;

  /// One command, one line.
  std::string ask(const std::string& command) {
    if (::send(fd_, command.data(), command.size(), MSG_NOSIGNAL) < 0) throw_away();
    std::string line;
    while (!line.ends_with("\r\n")) {
      char buffer[256];
      const auto got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) throw_away();
      line.append(buffer, static_cast<std::size_t>(got));
    }
    return line;
  }

 private:
  [[noreturn]] static void throw_away() { throw std::runtime_error{"the server went away"}; }
  int fd_ = -1;
  bool connected_ = false;
};

class add_grip final : public handle {
 public:
  add_grip(const std::string& url, unsigned lock)
      : db_{url}, key_{"floor-add-" + std::to_string(lock)} {}
  void lock() override {
    while (true) {
      const auto said =
          db_.ask("ms " + key_ + " 32 T31 ME c\r\n0123456789abcdef0123456789abcdef\r\n");
      if (said.starts_with("HD c")) {
        number_ = said.substr(4, said.size() - 6);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  void unlock() override { db_.ask("md " + key_ + " C" + number_ + "\r\n"); }

 private:
  line_client db_;
  const std::string key_;
  std::string number_;
};

}  // namespace

const subject_kind memcached_add_baseline{
    .name = "add",
    .counts_operations = false,
    .fits = is_memcached,
    .across_processes = always,
    .prepare = nothing,
    .open = open_locks<add_grip>,
};

}  // namespace bench
