#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

namespace harness {

/// A server on a free port of 127.0.0.1 whose answers a test chooses.
class fake_server {
 public:
  /// Called whenever bytes have arrived: removes from `heard` what it has understood, and returns
  /// the answer; nothing to hang up.
  using talk = std::function<std::optional<std::string>(std::string& heard)>;

  explicit fake_server(talk answer);
  ~fake_server();
  fake_server(const fake_server&) = delete;

  int port() const { return port_; }

 private:
  void work();
  void accept_one();
  bool serve(int fd, std::string& heard) const;

  const talk answer_;
  const int listening_;
  const int port_;
  const int over_fd_;
  std::map<int, std::string> clients_;
  std::thread thread_;
};

/// A blocking connection to a port of this machine.
class tcp_client {
 public:
  explicit tcp_client(int port, std::chrono::seconds patience = std::chrono::minutes(1));
  ~tcp_client();
  tcp_client(const tcp_client&) = delete;

  void say(const std::string& bytes) const;
  void say_no_more() const;
  /// Reads this many bytes, or fewer if the connection ended before.
  std::string hear(std::size_t bytes);
  /// The next bytes that arrive; empty when the connection has ended.
  std::string hear_some(std::size_t at_most = std::string::npos);
  /// Reads everything until the end.
  std::string hear_all() { return hear(std::string::npos); }
  /// Whether the connection ended with RST.
  bool was_reset() const { return reset_; }

 private:
  int fd_;
  bool reset_ = false;
};

}  // namespace harness
