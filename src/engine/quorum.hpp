#pragma once

#include <condition_variable>
#include <functional>
#include <holdfast/redlock.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/acquire.hpp"

namespace holdfast::engine {

/// One of the stores of a redlock, and what is known of how it does. Thread-safe.
class quorum_node {
 public:
  quorum_node(std::shared_ptr<core> session, std::shared_ptr<const spec> what)
      : session_(std::move(session)), what_(std::move(what)) {}

  const std::shared_ptr<core>& session() const noexcept { return session_; }
  const std::shared_ptr<const spec>& what() const noexcept { return what_; }

  /// The circuit breaker: whether it is worth a question now. False after a failure, for ever
  /// longer, up to 5 s; and while it has not answered an earlier question in time.
  bool worth_asking(boot_time now, std::chrono::nanoseconds patience) const;
  void asked(boot_time now);
  void answered(const result<store::permits_reply>& reply, boot_time sent, boot_time now);

  /// What its clock says now, or a little more; zero if that is not known.
  std::int64_t wall_at(boot_time now) const;

 private:
  const std::shared_ptr<core> session_;
  const std::shared_ptr<const spec> what_;
  mutable std::mutex mutex_;
  unsigned unanswered_ = 0;
  boot_time waiting_since_{};
  unsigned failures_ = 0;
  boot_time ask_again_at_{};
  std::int64_t wall_ahead_ = 0;  ///< of our own clock
};

/// All of them.
struct quorum {
  std::string name;
  std::vector<std::shared_ptr<quorum_node>> nodes;
  std::chrono::nanoseconds patience{};
  std::chrono::milliseconds trust_after{};

  std::size_t majority() const noexcept { return nodes.size() / 2 + 1; }
  core& first() const noexcept { return *nodes.front()->session(); }
  boot_time now() const noexcept { return first().now(); }
};

/// One question to all nodes, or some, at the same time. Each answer is told to `each`, on a thread
/// of its session; who wants to waits until it has heard enough. Thread-safe.
class quorum_round : public std::enable_shared_from_this<quorum_round> {
 public:
  struct answer {
    vote said = vote::skipped;
    store::permits_reply reply{};
    boot_time sent{};
    failure why{};
  };
  using answers = std::vector<answer>;
  using listener = std::function<void(std::size_t node, const answer& what)>;

  quorum_round(std::shared_ptr<const quorum> of, listener each)
      : quorum_(std::move(of)), answers_(quorum_->nodes.size()), each_(std::move(each)) {}

  /// `keeps` is kept for as long as the question is on its way.
  void ask(std::size_t node, const store::permits_command& c, std::shared_ptr<const void> keeps,
           bool trusted_only = false);
  /// Until `enough` says so, all have answered, or it is that late.
  answers wait(boot_time until, const std::function<bool(const answers&)>& enough);

 private:
  void on_answer(std::size_t node, result<store::permits_reply> reply, boot_time sent);

  const std::shared_ptr<const quorum> quorum_;
  std::mutex mutex_;
  std::condition_variable changed_;
  answers answers_;
  std::size_t outstanding_ = 0;
  const listener each_;
};

std::size_t count(const quorum_round::answers& all, vote v);

}  // namespace holdfast::engine
