#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "harness/shared_memory.hpp"
#include "harness/temp_dir.hpp"

namespace harness {

/// A redis-server of this test's own: on a free port and on a socket in a fresh folder, saving
/// nothing unless told to. A machine without redis-server fails the test.
class redis_server {
 public:
  /// More lines of its configuration, as in {"--requirepass", "secret"}; the word "a free port"
  /// stands for one. `file` is a configuration file, if it has to have one.
  explicit redis_server(std::vector<std::string> arguments = {}, const std::string& file = {});
  ~redis_server();
  redis_server(const redis_server&) = delete;

  int port() const { return port_; }
  std::string socket() const { return dir_.file("redis.sock"); }
  std::string file(const std::string& name) const { return dir_.file(name); }
  /// redis+unix:// and redis:// URLs; `options` as in "?prefix=x".
  std::string url(const std::string& options = {}) const {
    return "redis+unix://" + socket() + options;
  }
  std::string tcp_url(const std::string& options = {}) const;

  /// One command over a connection of its own; the reply as one line of text: "OK", "3", "a b c",
  /// "-ERR …" for errors, "nil".
  std::string ask(const std::vector<std::string>& words) const;

  /// The value of one line of INFO, or of another command's answer in that form.
  std::string field(const std::vector<std::string>& words, const std::string& name) const;

  bool runs() const { return pid_ >= 0; }
  /// Keys of all its databases that nothing would ever end, or why it does not say. There must be
  /// none at any time: when it goes away the server is asked. Left out: what the test itself has
  /// written by a command to ask(), and may_stay().
  std::string keys_for_ever() const;
  /// Keys like that, with asterisks, may stay for ever, and why. That is about the keys of other
  /// programs: one of ours beside them (NAME:holdfast…) is meant only if the pattern says so.
  void may_stay(const std::string& pattern, const std::string& reason) const;
  /// It wants a password from now on.
  void wants(const std::string& password) { password_ = password; }

  void kill();
  void stop();
  void resume();
  /// After kill(): the same port and socket, and what was saved.
  void start();
  /// The same, not waiting until its data is read.
  void start_loading();
  /// Ends it in order: what it holds is saved first.
  void save_and_end();

  /// The wall clock of this server from now on, as far from the machine's.
  void shift_clock(std::chrono::microseconds by) { *clock_shift_ = by.count(); }

 private:
  void choose_ports(const std::vector<std::string>& arguments);
  void start_once(bool loading_is_fine = false);
  bool answers(bool loading_is_fine) const;

  temp_dir dir_;
  shared<std::atomic<std::int64_t>> clock_shift_{dir_.file("clock-shift")};
  std::string config_;
  std::vector<std::string> arguments_;
  int port_ = 0;
  pid_t pid_ = -1;
  bool stopped_ = false;
  std::string password_;
  mutable std::mutex asking_;
  mutable std::set<std::string> of_the_test_;
  mutable std::map<std::string, std::string> may_stay_;  // pattern, reason
};

/// One command to the server that listens at a socket's path or a port, as redis_server::ask.
std::string ask_redis(const std::string& where, const std::vector<std::string>& words);
/// Its keys that nothing would ever end and that `counts` says yes to; or why it does not say.
std::string redis_keys_for_ever_at(const std::string& where, const std::string& password,
                                   const std::function<bool(const std::string&)>& counts);

/// A port of 127.0.0.1 that nobody listens on.
int free_port();

}  // namespace harness
