#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <holdfast/store/command.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "simulation/judge.hpp"

namespace simulation {

/// A barrier's phases as the server saw them, and what participants may learn of them. Threads that
/// share an object may act for any of its participants, so a process is judged by counts.
class phase_book {
 public:
  using owner = holdfast::store::owner_id;

  phase_book(judge& to, std::string name, std::uint32_t count, bool has_completion)
      : judge_(to), name_(std::move(name)), count_(count), has_completion_(has_completion) {}

  // ---- at the server
  //
  // The participant leaves, or another one takes its place: that breaks nothing.
  void leaves(const owner& who) { left_.insert(who); }
  /// The participant arrives, perhaps repeatedly. If its phase broke before it knew of that, it
  /// arrives in the next phase.
  void arrives(const owner& who, int process) {
    arrived_.insert(who);
    process_of_[who] = process;
  }
  /// It arrived in a phase in which the same command found a participant dead: no record shows its
  /// arrival.
  void arrives_where_it_breaks(int process) { ++of_[process].broken; }
  /// The last participant has dropped out, as all others had.
  void all_are_out() { emptied_ = true; }
  /// The answer said that the participant continues. The record may not show that any more, if the
  /// next query found a participant dead.
  void goes_on(const owner& who, int process) { granted_[who] = process; }
  /// The state of the barrier after a command; `clock`: the server's time.
  void stands(const holdfast::store::permits_record& at_the_server, nanos now,
              const std::function<int(std::string_view)>& process_of, std::int64_t clock = 0);
  /// The server carried out a request of the process for which no thread waited any more.
  void late_request(int process) { of_[process].late = true; }
  /// The last participant to arrive runs the completion function before the others continue.
  void completes();
  /// Whether a participant has ever dropped out.
  bool any_dropped() const noexcept { return for_good_; }
  /// An operator has cleared the barrier: of `waited` waiting participants, `still` are still
  /// there.
  void cleared(std::size_t waited, std::size_t still) const;
  /// Another record replaces the barrier's: earlier states may come back.
  void forgot();

  // ---- what participants learn
  //
  // The thread arrives, or waits for its arrival again.
  void begins(int process, const std::string& thread) { of_[process].at_it.insert(thread); }
  /// The threads of the process share a barrier object, so a thread may learn the result of another
  /// thread's arrival.
  void shares(int process) { of_[process].one_thread = false; }
  /// The thread has learned the result of its arrival.
  void knows(int process, const std::string& thread) { of_[process].at_it.erase(thread); }
  /// The thread continues. Where nothing is late, it must do so within `soon` after its phase has
  /// ended and its wait has begun.
  void passes(int process, nanos asked, nanos now, nanos waits_since = 0, nanos soon = never);
  void told_broken(int process);
  /// The participant was told that nobody knows whether its phase ended or broke.
  void told_unknown(int process);
  /// The same, at a time when the store must still know of the arrival if it was carried out. But
  /// it forgets one that began to drop out at `drops_since` if all others have left since then.
  void told_too_soon(int process, nanos drops_since = never) const;
  /// No participant is away for so long that its lease ends.
  void never_breaks() noexcept { breaks_never_ = true; }
  /// The process was told that one of its participants has dropped out.
  void has_dropped_out(int process);
  /// A process ends, and its entries end with it.
  void a_process_goes() noexcept { breaks_never_ = false; }
  void refused_as_full(int process, nanos asked);
  /// A wait that timed out; its arrival still counts. Nothing went wrong since `calm_since`.
  void not_in_time(int process, nanos asked, nanos now, nanos calm_since, nanos bound);
  /// The arrival failed with an error that leaves its outcome open.
  void in_doubt(int process) { of_[process].exact = false, ++of_[process].taken_up; }
  /// The process's session closes in an orderly way.
  void ends(int process) const;

 private:
  struct place {
    int process = 0;
    bool waits = false;
    bool for_good = false;
    bool alone = false;    ///< the last participant to arrive, which has to notify the others
    bool unnamed = false;  ///< no process in the record: perhaps it has dropped out
  };
  struct told {
    std::deque<nanos> openings;  ///< of each of its participants, until one of them learns of it
    nanos broke_at = never;      ///< no participant has learned of it yet
    std::uint64_t broken = 0;    ///< participants of phases that broke
    std::uint64_t waited = 0;    ///< the number of those that were waiting
    std::uint64_t told_so = 0;
    std::uint64_t unknown = 0;  ///< participants told that their result is unknown
    std::uint64_t standing = 0;
    std::uint64_t taken_up = 0;   ///< arrivals whose result a later one may learn
    std::set<std::string> at_it;  ///< threads that have arrived, and do not know the result
    bool late = false;            ///< so a thread may have more than one entry
    bool exact = true;
    bool one_thread = true;
  };
  using places = std::map<owner, place>;

  places read(const holdfast::store::permits_record& r,
              const std::function<int(std::string_view)>& process_of) const;
  void opens_and_breaks(const places& next, nanos now);
  void arrive_again(const places& next);
  void judge_stay(const holdfast::store::permits_record& r, std::int64_t clock) const;
  bool opens(const places& next, nanos now);
  void judge_opening(std::size_t gone_on, const places& next) const;
  void breaks(const places& next, nanos now);
  void is_lost(const owner& who, const place& at, nanos now);
  void violated(const char* rule, std::string what) const;

  judge& judge_;
  std::string name_;
  std::uint32_t count_;
  bool has_completion_;
  std::uint64_t completed_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t broke_ = 0;
  std::size_t went_early_ = 0;  ///< left a complete phase before the others were notified
  places there_;
  places broken_;                  ///< the entries of phases that broke
  std::map<owner, nanos> opened_;  ///< when the last phase ended that the participant was in
  std::map<owner, int> granted_;
  bool for_good_ = false;
  std::set<owner> out_;  ///< participants that the server has recorded as having dropped out
  std::size_t told_out_ = 0;
  nanos empty_at_ = -1;  ///< when the record was last without participants
  bool emptied_ = false;
  std::set<owner> left_, arrived_;
  std::set<owner> given_up_;         ///< nobody learns the result of these arrivals any more
  std::map<owner, int> process_of_;  ///< the process of each arrival
  std::map<int, told> of_;
  nanos full_until_ = -1;
  bool breaks_never_ = false;
  bool another_record_ = false;
  bool forgot_ = false;
};

}  // namespace simulation
