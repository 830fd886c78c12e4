#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <vector>

#include "lease/lease_timer.hpp"
#include "quorum/quorum.hpp"
#include "session/worker.hpp"

namespace holdfast::engine {

class quorum_renewer;

/// A lock that a majority granted, or is asked for. The sessions' runners ask the nodes, and the
/// renewer watches the time, so no unresponsive node holds up anything. Thread-safe.
class quorum_hold : public std::enable_shared_from_this<quorum_hold> {
 public:
  using answers = quorum_round::answers;
  struct awaited;
  using next_step = std::optional<awaited> (quorum_hold::*)(answers&&);
  /// A round that was asked, the answers that it needs, and the function to be called with them.
  struct awaited {
    std::shared_ptr<quorum_round> round;
    boot_time until = forever;
    quorum_round::condition enough;
    next_step then = nullptr;

    bool is_over(boot_time now) const { return now >= until || round->settled(enough); }
    void wait(const std::stop_token& stop = {}) const { round->wait(until, enough, stop); }
  };

  quorum_hold(std::shared_ptr<const quorum> of, std::chrono::milliseconds lease, bool renew);

  /// One vote, in rounds. A thread waits for each round, or an operation is notified by `news`. The
  /// vote is over when nothing is awaited any more. If it was not won, or if one of these functions
  /// throws, the lock is released wherever it may be held.
  std::optional<awaited> begin_vote(const vote_time& time, quorum_round::news after_each = {});
  std::optional<awaited> go_on(const awaited& after);
  /// The caller gives up, and waits no longer than `until`.
  std::optional<awaited> break_off(const awaited& meanwhile, boot_time until);
  bool won() const noexcept { return timer_.has_value(); }
  /// Releases it, without waiting for that.
  void let_go() noexcept;
  /// Whether so many nodes are there that a client could have won the vote. That is unclear if it
  /// depends on nodes that failed before, and were not waited for.
  enum class reach : std::uint8_t { enough, unclear, too_few };
  reach reached() const noexcept { return reach_; }
  /// The message of the first node that failed; empty if none did.
  const std::string& first_failure() const noexcept { return first_failure_; }
  /// The permanent failure, if that is why the vote was not won.
  const std::optional<failure>& hopeless() const noexcept { return hopeless_; }

  /// From now on it is renewed, and its loss is reported.
  void keep(std::shared_ptr<quorum_renewer> by);
  status release() noexcept;
  /// release() in two parts. end() returns the result if nothing has to be released; otherwise
  /// released_as() returns it when nothing is awaited any more.
  std::optional<status> end() noexcept;
  std::optional<awaited> begin_giving_back(quorum_round::news after_each = {});
  status released_as() const noexcept;
  status give_back_in_vain() noexcept;

  /// False if it is not renewed, and ends by itself.
  bool renews() const noexcept { return renew_; }
  std::uint64_t fence() const noexcept { return public_fence(fence_); }
  lease_state state() const;
  std::chrono::nanoseconds remaining() const;
  std::stop_token lost();
  std::vector<holdfast::vote> votes() const;
  const quorum& of() const noexcept { return *quorum_; }

  /// For the renewer: does what is due, and returns when to call again.
  boot_time look_after();

 private:
  using answer = quorum_round::answer;
  /// The state of a vote or a release that is under way.
  struct ballot {
    vote_time time{};
    quorum_round::news news{};
    boot_time began{};
    std::uint64_t proposal = 0;
    std::shared_ptr<quorum_round> grants{};
    answers votes{};
    bool given_back = false;
  };
  store::permits_command grant_command(const quorum_node& at, std::uint64_t at_least) const;
  std::vector<std::size_t> worth_asking() const;
  std::shared_ptr<quorum_round> new_round(quorum_round::listener each) const;
  template <class Step>
  std::optional<awaited> or_give_back(Step step);
  bool decided(const answers& so_far) const;
  std::optional<awaited> begin_asking();
  std::optional<awaited> ask_for_grants(const std::vector<std::size_t>& nodes, next_step then);
  std::optional<awaited> on_first_grants(answers&& votes);
  std::optional<awaited> on_grants(answers&& votes);
  bool knows_fence(const answer& a) const;
  bool enough_know_fence(const answers& all) const;
  answers with_learned(const answers& learned) const;
  std::optional<awaited> on_fence(answers&& learned);
  std::optional<awaited> conclude(const answers& votes);
  std::optional<awaited> fail(const answers& votes);
  std::optional<awaited> give_back(std::vector<bool> wait_for, next_step then);
  std::optional<awaited> on_given_back(answers&&) { return std::nullopt; }
  std::optional<awaited> on_released(answers&& said);
  void give_back_later() noexcept;
  void abandon() noexcept;
  bool had_no_time(const answers& votes, std::size_t node) const;
  reach reached(const answers& votes) const;
  void note(const answers& votes);
  void renew();
  void ask_for_renewal();
  bool may_ask(std::size_t node);
  void tell_lost();
  void on_renewal(std::uint64_t round, boot_time began, std::size_t node, holdfast::vote said);
  boot_time renewed_by(std::size_t nodes) const noexcept;
  void tell(event_kind kind, std::chrono::nanoseconds margin = {}) const;

  const std::shared_ptr<const quorum> quorum_;
  const std::chrono::milliseconds lease_;
  const bool renew_;
  const store::owner_id owner_;
  std::uint64_t fence_ = 0;
  boot_time began_{};  ///< when the wait began
  boot_time since_{};  ///< when the wait ended
  std::optional<failure> hopeless_;
  reach reach_ = reach::enough;
  std::string first_failure_;
  std::string too_few_confirmed_;  ///< why the release failed
  ballot ballot_;
  bool was_lost_ = false;
  bool told_end_ = false;
  std::error_code released_as_;
  std::shared_ptr<quorum_renewer> renewer_;
  std::stop_source lost_;

  /// Locked before mutex_, by the thread that asks: no renewal may be sent after the release.
  std::mutex asking_;
  std::vector<bool> asked_;

  class early_votes;
  struct renewal;
  std::shared_ptr<renewal> renewal_;  ///< the present round; for the thread that calls look_after()

  mutable std::mutex mutex_;
  std::optional<lease_timer> timer_;
  bool released_ = false;
  bool told_lost_ = false;
  std::vector<holdfast::vote> votes_;
  std::vector<bool> owes_;    ///< nodes that owe the answer to a renewal
  std::vector<bool> to_ask_;  ///< nodes not asked yet in this round
  bool ask_more_ = false;     ///< one of the nodes to ask has answered an earlier renewal
  std::uint64_t round_ = 0;
  std::vector<boot_time> renewed_;   ///< when the round began in which the node last renewed it
  boot_time round_began_{};
  boot_time round_until_ = forever;  ///< while the round may fail by its time: when it does
  bool decided_ = false;             ///< the round, by its own answers
  std::size_t no_ = 0;
};

/// Watches the holds of one redlock: one thread, started with the first hold, that never waits for
/// a store. Thread-safe.
class quorum_renewer {
 public:
  /// In a forked child the renewer is not destroyed, because its thread is the parent's.
  static std::shared_ptr<quorum_renewer> make(std::shared_ptr<session_impl> of);
  explicit quorum_renewer(holdfast::clock& on);
  ~quorum_renewer();
  status start() noexcept;
  void add(std::weak_ptr<quorum_hold> h);
  /// Something has changed: makes the thread check all holds.
  void wake();

 private:
  struct shared;
  static void run(const std::shared_ptr<shared>& s);
  const std::shared_ptr<shared> shared_;
  worker thread_;
};

}  // namespace holdfast::engine
