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

/// A redis-server of this test's own: on a free port and on a socket in a fresh folder, without
/// persistence unless configured. On a machine without redis-server the test fails.
class redis_server {
 public:
  /// `arguments` are further lines of its configuration, such as {"--requirepass", "secret"}; the
  /// word "a free port" is replaced with one. `file` is a configuration file, if it needs one.
  explicit redis_server(std::vector<std::string> arguments = {}, const std::string& file = {});
  ~redis_server();
  redis_server(const redis_server&) = delete;

  int port() const { return port_; }
  std::string socket() const { return dir_.file("redis.sock"); }
  std::string file(const std::string& name) const { return dir_.file(name); }
  /// redis+unix:// and redis:// URLs; `options` such as "?prefix=x".
  std::string url(const std::string& options = {}) const {
    return "redis+unix://" + socket() + options;
  }
  std::string tcp_url(const std::string& options = {}) const;

  /// Sends one command over a connection of its own; returns the reply as one line of text: "OK",
  /// "3", "a b c", "-ERR …" for errors, "nil".
  std::string ask(const std::vector<std::string>& words) const;

  /// The value of one line of INFO, or of another command's answer in that form.
  std::string field(const std::vector<std::string>& words, const std::string& name) const;

  bool runs() const { return pid_ >= 0; }
  /// The keys of all its databases without an expiry, or the error if the server does not answer.
  /// There must be none at any time: the destructor checks that. Excluded are keys that the test
  /// itself has written by a command to ask(), and may_stay().
  std::string keys_for_ever() const;
  /// Keys that match the pattern (with asterisks) may stay for ever, for that reason. This is for
  /// the keys of other programs: a key of the library beside them (NAME:holdfast…) is covered only
  /// if the pattern says so.
  void may_stay(const std::string& pattern, const std::string& reason) const;
  /// The server requires a password from now on.
  void wants(const std::string& password) { password_ = password; }

  void kill();
  void stop();
  void resume();
  /// After kill(): starts it on the same port and socket, with the saved data.
  void start();
  /// The same, without waiting until its data is loaded.
  void start_loading();
  /// Shuts the server down in an orderly way: it saves its data first.
  void save_and_end();

  /// From now on the server's wall clock differs from the machine's by this much.
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

/// Sends one command to the server at a socket's path or a port, as redis_server::ask.
std::string ask_redis(const std::string& where, const std::vector<std::string>& words);
/// Its keys without an expiry for which `counts` returns true, or the error if the server does not
/// answer.
std::string redis_keys_for_ever_at(const std::string& where, const std::string& password,
                                   const std::function<bool(const std::string&)>& counts);

/// A port of 127.0.0.1 on which nobody listens.
int free_port();

}  // namespace harness
