#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <holdfast/redlock.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "wait/acquire.hpp"

namespace holdfast::engine {

/// One of the stores of a redlock, and the state of its answers. Thread-safe.
class quorum_node {
 public:
  quorum_node(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> what)
      : session_(std::move(session)), what_(std::move(what)) {}

  const std::shared_ptr<session_impl>& session() const noexcept { return session_; }
  const std::shared_ptr<const lock_config>& what() const noexcept { return what_; }

  /// The circuit breaker: whether a request is worthwhile now. False after a failure, for a time
  /// that grows up to 5 s; and while the node owes an answer to an earlier request beyond the time
  /// limit.
  bool worth_asking(boot_time now, std::chrono::nanoseconds patience) const;
  /// Whether it has owed an answer for that long.
  bool hangs(boot_time now, std::chrono::nanoseconds patience) const;
  /// Whether its last answer was a failure.
  bool fails() const;
  void asked(boot_time now);
  /// Reads the answers that have arrived.
  void catch_up() const;
  /// Commands by the session's runner and posted commands have no order among each other. So while
  /// the runner has a command of ours, later ones have to use it, too. After a failure nothing is
  /// posted: only a thread that waits for the answer can repair some causes, such as a missing
  /// script.
  void given_to_runner();
  bool may_post() const;
  void answered_by_runner();
  void answered(const result<store::permits_reply>& reply, boot_time sent, boot_time now);

  /// The node's present clock time, or a little more; zero if it is not known.
  std::int64_t wall_at(boot_time now) const;

 private:
  const std::shared_ptr<session_impl> session_;
  const std::shared_ptr<const lock_config> what_;
  mutable std::mutex mutex_;
  unsigned unanswered_ = 0;
  unsigned with_runner_ = 0;
  boot_time waiting_since_{};
  unsigned failures_ = 0;
  boot_time ask_again_at_{};
  std::int64_t wall_ahead_ = 0;  ///< how much its clock is ahead of this machine's
};

/// The time limits of a vote: for each request, and for the whole vote.
struct vote_time {
  std::chrono::nanoseconds each{};
  boot_time deadline = forever;
  boot_time began{};  ///< when the wait that contains this vote began
  boot_time until(boot_time now) const noexcept {
    return std::min(saturated_add(now, each), deadline);
  }
};

/// All nodes of a redlock.
struct quorum {
  std::string name;
  std::vector<std::shared_ptr<quorum_node>> nodes;
  std::chrono::nanoseconds patience{};
  std::chrono::nanoseconds trust_after{};

  std::size_t majority() const noexcept { return nodes.size() / 2 + 1; }
  session_impl& first() const noexcept { return *nodes.front()->session(); }
  boot_time now() const noexcept { return first().now(); }
};

/// One request to all nodes, or some, at the same time. If the store can, the request is posted,
/// and the waiting thread reads the answers of all nodes itself; otherwise it is sent by the
/// session's runner. `each` receives each answer, on any thread. The caller may wait until it has
/// heard enough, or be notified of each further answer. Thread-safe.
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
  /// Called after each answer, on any thread, with no mutex held.
  using news = std::function<void()>;

  /// With `news`, wait() is not called, so no thread would read posted answers: all requests use
  /// the runners.
  quorum_round(std::shared_ptr<const quorum> of, listener each, news after_each = {})
      : quorum_(std::move(of)),
        answers_(quorum_->nodes.size()),
        posted_(quorum_->nodes.size()),
        each_(std::move(each)),
        news_(std::move(after_each)) {}

  enum class asked {
    plainly,
    of_trusted,  ///< a grant of a recently started node is not a vote
  };
  /// What `c` points to belongs to the node or to its session, which are kept until the request has
  /// ended.
  void ask(std::size_t node, const store::permits_command& c, asked how = asked::plainly);
  using condition = std::function<bool(const answers&)>;
  /// Waits until `enough` returns true, all nodes have answered, `until` has passed, or `stop` is
  /// requested. To be called by the thread that asks.
  void wait(boot_time until, const condition& enough, const std::stop_token& stop);
  /// Whether there is nothing left to wait for.
  bool settled(const condition& enough);
  answers so_far();

 private:
  /// A request that was posted.
  struct posting {
    bool under_way = false;
    std::optional<failure> broke{};  ///< the failure; the runner has to ask again
    store::permits_command command{};
  };
  class bell;
  /// Unregisters the waiting thread at the end of wait(), even if there was no memory for the
  /// answers.
  struct leaves_its_bell {
    quorum_round& of;
    std::unique_lock<std::mutex>& lock;
    ~leaves_its_bell();
  };

  bool post(std::size_t node, const store::permits_command& c);
  /// If there is no memory for the request, that failure is the node's answer.
  void ask_runner(std::size_t node, const store::permits_command& c, bool trusted_only) noexcept;
  void on_posted(std::size_t node, result<store::permits_reply> reply, boot_time sent);
  void on_answer(std::size_t node, result<store::permits_reply> reply, boot_time sent,
                 bool trusted);
  void rouse_waiter();
  bool anything_posted() const;
  void read_answers(std::unique_lock<std::mutex>& lock, bell& by, boot_time until);
  /// Takes the postings that failed, and calls `then` for each of them without the mutex.
  template <class Then>
  void take_broken(std::unique_lock<std::mutex>& lock, const Then& then);

  const std::shared_ptr<const quorum> quorum_;
  std::mutex mutex_;
  std::condition_variable changed_;
  answers answers_;
  std::vector<posting> posted_;
  std::size_t outstanding_ = 0;
  bell* waiter_ = nullptr;  ///< the waiting thread, which reads posted answers
  const listener each_;
  const news news_;
};

std::size_t count(const quorum_round::answers& all, vote v);

}  // namespace holdfast::engine
