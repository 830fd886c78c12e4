#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "harness/temp_dir.hpp"

namespace harness {

/// A redis-server of this test's own: on a free port and on a socket in a fresh folder, saving
/// nothing unless told to. A machine without redis-server fails the test.
class redis_server {
 public:
  /// More lines of its configuration, as in {"--requirepass", "secret"}; the word "a free port" stands
  /// for one. `file` is a configuration file, if it has to have one.
  explicit redis_server(std::vector<std::string> arguments = {}, const std::string& file = {});
  ~redis_server();
  redis_server(const redis_server&) = delete;

  int port() const { return port_; }
  std::string socket() const { return dir_.file("redis.sock"); }
  std::string file(const std::string& name) const { return dir_.file(name); }
  /// redis+unix:// and redis:// URLs; `options` as in "?prefix=x".
  std::string url(const std::string& options = {}) const { return "redis+unix://" + socket() + options; }
  std::string tcp_url(const std::string& options = {}) const;

  /// One command over a connection of its own; the reply as one line of text: "OK", "3", "a b c",
  /// "-ERR …" for errors, "nil".
  std::string ask(const std::vector<std::string>& words) const;

  /// The value of one line of INFO, or of another command's answer in that form.
  std::string field(const std::vector<std::string>& words, const std::string& name) const;

  bool runs() const { return pid_ >= 0; }
  void kill();
  void stop();
  void resume();
  /// After kill(): the same port and socket, and what was saved.
  void start();

 private:
  void choose_ports(const std::vector<std::string>& arguments);
  void start_once();
  bool answers() const;

  temp_dir dir_;
  std::string config_;
  std::vector<std::string> arguments_;
  int port_ = 0;
  pid_t pid_ = -1;
};

/// A port of 127.0.0.1 that nobody listens on.
int free_port();

}  // namespace harness
