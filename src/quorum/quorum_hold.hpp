#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <vector>

#include "lease/lease_timer.hpp"
#include "quorum/quorum.hpp"

namespace holdfast::engine {

class quorum_renewer;

/// What a majority granted, or is asked for. The nodes are asked by their sessions' runners and the
/// time is watched by the renewer, so that no node which hangs holds up anything. Thread-safe.
class quorum_hold : public std::enable_shared_from_this<quorum_hold> {
 public:
  quorum_hold(std::shared_ptr<const quorum> of, std::chrono::milliseconds lease, bool renew);

  /// Votes once. False if it is not free: then it was given back wherever it may be.
  bool vote(const vote_time& time);
  /// Whether so few nodes answered that nobody could have had it.
  bool too_few_answered() const noexcept { return too_few_answered_; }
  /// What the first node said that failed; empty if none did.
  const std::string& first_failure() const noexcept { return first_failure_; }
  /// What went wrong for good, if that is why.
  std::optional<failure> hopeless() const;

  /// From now on it is renewed, and its loss told.
  void keep(std::shared_ptr<quorum_renewer> by);
  std::error_code release() noexcept;

  std::uint64_t fence() const noexcept { return public_fence(fence_); }
  lease_state state() const;
  std::chrono::nanoseconds remaining() const;
  std::stop_token lost();
  std::vector<holdfast::vote> votes() const;
  const quorum& of() const noexcept { return *quorum_; }

  /// For the renewer: does what is due, and says when to come again.
  boot_time look_after();

 private:
  using answer = quorum_round::answer;
  using answers = quorum_round::answers;
  store::permits_command grant_command(const quorum_node& at, std::uint64_t at_least) const;
  std::vector<std::size_t> worth_asking() const;
  answers ask_for_grants(const vote_time& time);
  bool agree_on_fence(answers& votes, const vote_time& time);
  answers give_back(const vote_time& time, const std::vector<bool>& wait_for);
  bool vote_for(const vote_time& time);
  std::error_code give_back_now(bool was_lost);
  void give_back_later() noexcept;
  bool fail(const answers& votes, boot_time began, const vote_time& time);
  bool had_no_time(const answers& votes, std::size_t node, boot_time began) const;
  void note(const answers& votes);
  void renew();
  void tell_lost();
  void on_renewal(std::uint64_t round, std::size_t node, holdfast::vote said);
  void tell(event_kind kind, std::chrono::nanoseconds margin = {}) const;

  const std::shared_ptr<const quorum> quorum_;
  const std::chrono::milliseconds lease_;
  const bool renew_;
  const store::owner_id owner_;
  std::uint64_t fence_ = 0;
  boot_time began_{};  ///< of the wait, and …
  boot_time since_{};  ///< … its end
  std::optional<failure> hopeless_;
  bool too_few_answered_ = false;
  std::string first_failure_;
  std::shared_ptr<quorum_renewer> renewer_;
  std::stop_source lost_;

  /// Taken before mutex_, by the thread that asks: no renewal may come behind the release.
  std::mutex asking_;
  std::vector<bool> asked_;

  mutable std::mutex mutex_;
  std::optional<lease_timer> timer_;
  bool released_ = false;
  bool told_lost_ = false;
  std::vector<holdfast::vote> votes_;
  std::uint64_t round_ = 0;
  boot_time round_sent_{};
  boot_time round_until_ = forever;  ///< while it is not decided: then it has failed
  std::size_t yes_ = 0, no_ = 0;
};

/// Looks after the holds of one redlock: one thread, started with the first, that never waits for a
/// store. Thread-safe.
class quorum_renewer {
 public:
  /// In a forked child it is left alone: its thread is the parent's.
  static std::shared_ptr<quorum_renewer> make(std::shared_ptr<session_impl> of);
  explicit quorum_renewer(holdfast::clock& on);
  ~quorum_renewer();
  status start() noexcept;
  void add(std::weak_ptr<quorum_hold> h);
  /// Something has changed: look again.
  void wake();

 private:
  struct shared;
  static void run(const std::shared_ptr<shared>& s);
  const std::shared_ptr<shared> shared_;
  std::mutex starting_;
  std::thread thread_;
};

}  // namespace holdfast::engine
