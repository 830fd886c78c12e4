#pragma once

#include <atomic>
#include <functional>
#include <holdfast/clock.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/wake_fd.hpp"
#include "store/memcached/options.hpp"

namespace holdfast::store::memcached {

/// One answer to a meta command: `VA 5 t30 c17` and a value.
struct meta_reply {
  std::string code;   ///< HD, VA, EN, NS, EX, NF; or the whole line of an error
  std::string flags;  ///< the text behind the code
  std::string value;
  /// The number behind a flag, as in c17.
  std::optional<std::int64_t> number(char flag) const;
  bool is(std::string_view c) const noexcept { return code == c; }
};

/// The failure for an error from the server.
failure server_says(const meta_reply& error, const address& server);

/// The time from the start of a server to its end. The server's seconds are whole ones.
struct server_life {
  std::int64_t pid = 0;
  std::int64_t began_s = 0;
  bool is(const server_life& other) const noexcept {
    return pid == other.pid && began_s - other.began_s <= 1 && other.began_s - began_s <= 1;
  }
};

/// A greeted connection: the server knows the meta commands, and has returned its time. For one
/// thread at a time.
class link {
 public:
  /// When `ends` becomes readable, this connection stops waiting: now, and in later requests.
  static result<std::unique_ptr<link>> connect(const address& to, const memcached_options& o,
                                               int ends = -1);
  ~link();
  link(const link&) = delete;

  /// Sends commands and waits for as many answers. After a failure the connection is unusable.
  result<std::vector<meta_reply>> ask(std::string_view commands, std::size_t replies);
  /// Sends a command and passes its answer on line by line, up to END.
  status list(std::string_view command, const std::function<void(std::string_view)>& line);

  /// Unique among all connections of this process, for ever: knowledge about one life of a server
  /// ends with its connection.
  std::uint64_t id() const noexcept { return id_; }
  bool works() const noexcept { return works_; }
  /// It is unusable because an answer did not come in time.
  bool hangs() const noexcept { return hangs_; }
  /// Microseconds since 1970 on the server's clock, which counts whole seconds.
  std::int64_t wall_at() const noexcept;
  const server_life& life() const noexcept { return life_; }

 private:
  link(int fd, const address& to, const memcached_options& o, int ends);
  status greet();
  status send(std::string_view bytes, boot_time deadline);
  status receive(boot_time deadline);
  result<std::string> line(boot_time deadline);
  result<meta_reply> reply(boot_time deadline);
  failure broken(std::string_view why);
  failure hung(std::string_view why);
  failure out_of_step();

  const int fd_;
  const address to_;
  const memcached_options& options_;
  const std::uint64_t id_;
  const int ends_;
  bool works_ = true;
  bool hangs_ = false;
  bool late_ = false;  ///< the last look after the deadline of this command was taken
  std::string heard_;
  std::size_t at_ = 0;
  std::int64_t wall_at_greeting_ = 0;
  server_life life_{};
  boot_time greeted_at_{};
};

/// The connections to one server. Each thread borrows one for a conversation, so that a server that
/// does not answer costs each thread one time-out and not the sum of all. Thread-safe.
class server {
 public:
  server(address to, const memcached_options& o) : to_(std::move(to)), options_(o) {}
  /// Ends the thread of ask_again(). Waits only for a lookup of the server's name.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  using conversation = std::function<status(link&)>;
  /// Runs a conversation over the connection with that id if it is idle, or over any other. If the
  /// server has closed the connection meanwhile, runs it once more over a new one: the conversation
  /// must be safe to repeat.
  status talk(std::uint64_t preferred, const conversation& what);

  const address& where() const noexcept { return to_; }

  /// To be called when the server has not answered for so long that other requests should not wait
  /// for it. A thread then asks it.
  void fell_silent() noexcept {
    silent_ = true;
    (void)is_silent();
  }
  /// Whether it is still silent; if so, starts a thread that asks the server again, unless one is
  /// running.
  bool is_silent() noexcept;

 private:
  void ask_again() noexcept;
  std::unique_ptr<link> take(std::uint64_t preferred);
  void give_back(std::unique_ptr<link> used);

  const address to_;
  const memcached_options& options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<link>> idle_;
  std::atomic<bool> silent_{false};
  bool asking_ = false;
  std::optional<base::wake_fd> ends_;  ///< ends that thread; created when first needed
  std::thread asks_;
};

}  // namespace holdfast::store::memcached
