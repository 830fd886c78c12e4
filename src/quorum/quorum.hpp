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

/// One of the stores of a redlock, and what is known of how it does. Thread-safe.
class quorum_node {
 public:
  quorum_node(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> what)
      : session_(std::move(session)), what_(std::move(what)) {}

  const std::shared_ptr<session_impl>& session() const noexcept { return session_; }
  const std::shared_ptr<const lock_config>& what() const noexcept { return what_; }

  /// The circuit breaker: whether it is worth a request now. False after a failure, for ever
  /// longer, up to 5 s; and while it has not answered an earlier request in time.
  bool worth_asking(boot_time now, std::chrono::nanoseconds patience) const;
  /// Whether it has owed an answer for so long.
  bool hangs(boot_time now, std::chrono::nanoseconds patience) const;
  void asked(boot_time now);
  /// Takes the answers that are there.
  void catch_up() const;
  /// What goes by the session's runner and what is posted do not keep an order: as long as
  /// something of ours is with the runner, what comes behind it has to go there too. And what went
  /// wrong, such as a script that is gone, can be mended only by the waiter for the answer: after a
  /// failure nothing is posted.
  void given_to_runner();
  bool may_post() const;
  void answered_by_runner();
  void answered(const result<store::permits_reply>& reply, boot_time sent, boot_time now);

  /// What its clock says now, or a little more; zero if that is not known.
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
  std::int64_t wall_ahead_ = 0;  ///< of our own clock
};

/// How long a vote may take: so long each request, and no longer than until then in all.
struct vote_time {
  std::chrono::nanoseconds each{};
  boot_time deadline = forever;
  boot_time began{};  ///< the wait that this vote is part of
  boot_time until(boot_time now) const noexcept {
    return std::min(saturated_add(now, each), deadline);
  }
};

/// All of them.
struct quorum {
  std::string name;
  std::vector<std::shared_ptr<quorum_node>> nodes;
  std::chrono::nanoseconds patience{};
  std::chrono::nanoseconds trust_after{};

  std::size_t majority() const noexcept { return nodes.size() / 2 + 1; }
  session_impl& first() const noexcept { return *nodes.front()->session(); }
  boot_time now() const noexcept { return first().now(); }
};

/// One request to all nodes, or some, at the same time. Where the store can, it is posted, and
/// the waiter reads the answers of all nodes by itself; else it goes by the runner of the session.
/// `each` gets each answer, from any thread; the caller may wait until it has heard enough, or be
/// told when there is more to hear. Thread-safe.
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
  /// After each answer, from any thread, with no mutex held.
  using news = std::function<void()>;

  /// With `news`, nobody will wait(), and read what was posted: all goes by the runners.
  quorum_round(std::shared_ptr<const quorum> of, listener each, news after_each = {})
      : quorum_(std::move(of)),
        answers_(quorum_->nodes.size()),
        posted_(quorum_->nodes.size()),
        each_(std::move(each)),
        news_(std::move(after_each)) {}

  enum class asked {
    plainly,
    of_trusted,  ///< a grant of one that was started a moment ago is no vote
  };
  /// What `c` points to is the node's, or its session's: they are kept for as long as it is on its
  /// way.
  void ask(std::size_t node, const store::permits_command& c, asked how = asked::plainly);
  using condition = std::function<bool(const answers&)>;
  /// Until `enough` says so, all have answered, it is that late, or `stop` is requested. For the
  /// thread that asks.
  void wait(boot_time until, const condition& enough, const std::stop_token& stop);
  /// Whether there is nothing to wait for.
  bool settled(const condition& enough);
  answers so_far();

 private:
  /// A request that was posted.
  struct posting {
    bool under_way = false;
    std::optional<failure> broke{};  ///< to be asked again, by the runner
    store::permits_command command{};
  };
  class bell;
  /// Also where there is no memory for the answers.
  struct leaves_its_bell {
    quorum_round& of;
    std::unique_lock<std::mutex>& lock;
    ~leaves_its_bell();
  };

  bool post(std::size_t node, const store::permits_command& c);
  /// Without memory to ask it, that is its answer.
  void ask_runner(std::size_t node, const store::permits_command& c, bool trusted_only) noexcept;
  void begin_asking(std::size_t node, const store::permits_command& c, bool trusted_only);
  void on_posted(std::size_t node, result<store::permits_reply> reply, boot_time sent);
  void on_answer(std::size_t node, result<store::permits_reply> reply, boot_time sent,
                 bool trusted);
  void rouse_waiter();
  bool anything_posted() const;
  void read_answers(std::unique_lock<std::mutex>& lock, bell& by, boot_time until);
  void ask_broken_again(std::unique_lock<std::mutex>& lock);
  void give_up_broken(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<const quorum> quorum_;
  std::mutex mutex_;
  std::condition_variable changed_;
  answers answers_;
  std::vector<posting> posted_;
  std::size_t outstanding_ = 0;
  bell* waiter_ = nullptr;  ///< waits, and reads what was posted
  const listener each_;
  const news news_;
};

std::size_t count(const quorum_round::answers& all, vote v);

}  // namespace holdfast::engine
