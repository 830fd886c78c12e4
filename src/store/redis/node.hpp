#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "store/redis/link.hpp"

namespace holdfast::store::redis {

/// One server: the connection to it, its scripts, and the acknowledgement of its replicas where a
/// request asks for it. Thread-safe.
class node {
 public:
  explicit node(redis_options options)
      : options_(std::move(options)), clock_(*options_.clock), link_(options_) {}
  node(const node&) = delete;

  const redis_options& options() const noexcept { return options_; }
  status open() { return link_.open(); }

  using answer = link::answer;

  /// Sends all messages and waits for their replies. With `durable`, and if the URL demands it,
  /// also waits until the replicas have the writes, or ack_timeout is over. Sends a message again
  /// if the server refused it because it does not know the script, or because it came too late.
  result<answer> ask(std::span<const message> all, bool durable);
  /// Sends one command, or several that belong together; read-only.
  result<answer> ask(std::string_view commands, std::size_t replies = 1) {
    const message one{commands, replies};
    return ask({&one, 1}, false);
  }

  /// As link::post and link::settle. `then` must examine the answer for errors.
  bool post(const message& command, link::listener& then) { return link_.post(command, then); }
  /// Learns the server's time from a script's reply, and from the number of the connection that
  /// brought it: for posted requests.
  void learn(const resp_value& reply, std::uint64_t over) noexcept;
  void settle() { link_.settle(); }

  /// A request to it has timed out, and it has answered nothing since.
  bool is_silent() const noexcept { return silent_until_ != 0; }
  /// And that was just now: requests on which others depend should not wait for it again.
  bool fell_silent_just_now() const noexcept {
    return clock_.now().time_since_epoch().count() < silent_until_;
  }
  link& connection() noexcept { return link_; }

 private:
  /// The commands of one thread, which are sent together with those of other threads.
  struct part {
    std::span<const message> all;
    result<answer> outcome = answer{};
    bool over = false;
  };

  void learn(std::span<const message> all, const answer& got);
  void note_silence(bool answered, boot_time deadline) noexcept;
  result<answer> ask_server(std::span<const message> all);
  result<answer> ask_refused_again(std::span<const message> all, answer first, boot_time deadline);
  result<answer> ask_replicas_too(std::span<const message> all);
  void send_together(const std::vector<part*>& parts) noexcept;
  result<answer> settle_together(const std::vector<part*>& parts);
  static void take_out(std::vector<resp_value>& all, part& p, const answer& shared);

  const redis_options options_;
  clock& clock_;
  std::atomic<boot_time::rep> silent_until_{0};
  link link_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool sending_ = false;
  std::vector<part*> parts_;
};

}  // namespace holdfast::store::redis
