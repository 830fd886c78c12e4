#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "store/redis/link.hpp"

namespace holdfast::store::redis {

/// One server: the connection to it, its scripts, and the word of its replicas where that is asked
/// for. Thread-safe.
class node {
 public:
  explicit node(redis_options options)
      : options_(std::move(options)), clock_(*options_.clock), link_(options_) {}
  node(const node&) = delete;

  const redis_options& options() const noexcept { return options_; }
  status open() { return link_.open(); }

  using answer = link::answer;

  /// Sends all, and waits for their replies; and, where `durable` and the URL says so, until the
  /// replicas have what they wrote, or ack_timeout is over. What the server has refused because it
  /// does not know the script, or because it came too late, is asked again.
  result<answer> ask(std::span<const message> all, bool durable);
  /// One, or several that belong together, which only look.
  result<answer> ask(std::string_view commands, std::size_t replies = 1) {
    const message one{commands, replies};
    return ask({&one, 1}, false);
  }

  /// As link::post and link::settle. Whatever is wrong with the answer is for `then` to find out.
  bool post(const message& command, link::listener& then) { return link_.post(command, then); }
  /// What the reply of a script tells of the server's time, and over which connection it came: for
  /// requests that were posted.
  void learn(const resp_value& reply, std::uint64_t over) noexcept;
  void settle() { link_.settle(); }

  /// It let a request wait in vain, and has answered nothing since.
  bool is_silent() const noexcept { return silent_until_ != 0; }
  /// And that was just now: what others depend on should not wait for it again.
  bool fell_silent_just_now() const noexcept {
    return clock_.now().time_since_epoch().count() < silent_until_;
  }
  link& connection() noexcept { return link_; }

 private:
  /// Commands of one thread, which go together with those of others.
  struct part {
    std::span<const message> all;
    result<answer> outcome = answer{};
    bool over = false;
  };

  void learn(std::span<const message> all, const answer& got) noexcept;
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
