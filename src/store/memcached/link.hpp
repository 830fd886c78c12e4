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
  std::string flags;  ///< what stands behind it
  std::string value;
  /// The number behind a flag, as in c17.
  std::optional<std::int64_t> number(char flag) const;
  bool is(std::string_view c) const noexcept { return code == c; }
};

/// What the server's error means for the caller.
failure server_says(const meta_reply& error, const address& server);

/// From one start of a server to its end. Its seconds are whole ones.
struct server_life {
  std::int64_t pid = 0;
  std::int64_t began_s = 0;
  bool is(const server_life& other) const noexcept {
    return pid == other.pid && began_s - other.began_s <= 1 && other.began_s - began_s <= 1;
  }
};

/// A connection that was greeted: the server knows the meta commands, and has said what time it is.
/// One thread at a time.
class link {
 public:
  /// As soon as `ends` can be read, nothing is waited for any more: now, and by what is asked
  /// later.
  static result<std::unique_ptr<link>> connect(const address& to, const memcached_options& o,
                                               int ends = -1);
  ~link();
  link(const link&) = delete;

  /// Sends commands and waits for as many answers. Any failure leaves the connection unusable.
  result<std::vector<meta_reply>> ask(std::string_view commands, std::size_t replies);
  /// Sends a command and takes its answer line by line, up to END.
  status list(std::string_view command, const std::function<void(std::string_view)>& line);

  /// Of all connections of this process, for ever: what is known of one server's life ends with it.
  std::uint64_t id() const noexcept { return id_; }
  bool works() const noexcept { return works_; }
  /// It does not work because an answer did not come in time.
  bool hangs() const noexcept { return hangs_; }
  /// Microseconds since 1970 on the server's clock, which has whole seconds.
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
  bool late_ = false;  ///< the answer to this command was looked for when its time was over
  std::string heard_;
  std::size_t at_ = 0;
  std::int64_t wall_at_greeting_ = 0;
  server_life life_{};
  boot_time greeted_at_{};
};

/// The connections to one server: each thread borrows one for a conversation, so that a server that
/// hangs costs each the time-out and not the sum of them. Thread-safe.
class server {
 public:
  server(address to, const memcached_options& o) : to_(std::move(to)), options_(o) {}
  /// Ends what ask_again() began. Only for a look-up of the server's name it waits.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  using conversation = std::function<status(link&)>;
  /// Has it over the connection with that id if it is idle, or any. If the server has ended it
  /// meanwhile, has it once more over a new one: it must be one that may be repeated.
  status talk(std::uint64_t preferred, const conversation& what);

  const address& where() const noexcept { return to_; }

  /// It has answered nothing for so long that others should not wait for it. A thread asks it.
  void fell_silent() noexcept {
    silent_ = true;
    (void)is_silent();
  }
  /// Whether it is silent since; then a thread asks it once more, if none does.
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
  std::optional<base::wake_fd> ends_;  ///< that, from the first time on
  std::thread asks_;
};

}  // namespace holdfast::store::memcached
