#pragma once

#include <deque>
#include <functional>
#include <holdfast/store/command.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "simulation/judge.hpp"

namespace simulation {

/// A barrier's phases as the server had them, and what participants may be told of them. Threads
/// that share an object stand for any of its participants, so a process is judged by numbers.
class phase_book {
 public:
  using owner = holdfast::store::owner_id;

  phase_book(judge& to, std::string name, std::uint32_t count, bool has_completion)
      : judge_(to), name_(std::move(name)), count_(count), has_completion_(has_completion) {}

  // ---- at the server
  /// It goes, or another takes its place: nothing breaks by that.
  void leaves(const owner& who) { left_.insert(who); }
  /// It arrives, perhaps once more: if its phase broke before it knew of it, in the next one.
  void arrives(const owner& who, int process) {
    arrived_.insert(who);
    process_of_[who] = process;
  }
  /// It took its place in a phase in which the same command found a participant dead: no record
  /// shows that it was there.
  void arrives_where_it_breaks(int process) { ++of_[process].broken; }
  /// Its answer said that it goes on. The record may not show that any more: the next query found
  /// a participant dead.
  void goes_on(const owner& who, int process) { granted_[who] = process; }
  /// How the barrier stands after a command.
  void stands(const holdfast::store::permits_record& at_the_server, nanos now,
              const std::function<int(std::string_view)>& process_of);
  /// A request of it was carried out that nobody waited for any more.
  void late_request(int process) { of_[process].late = true; }
  /// What the last to come has to do before the others go on.
  void completes();
  /// A participant has dropped out at some time.
  bool any_dropped() const noexcept { return for_good_; }
  /// An operator has taken out all: of those that waited, so many are still there.
  void cleared(std::size_t waited, std::size_t still) const;
  /// Another record takes its place: what was may be again.
  void forgot();

  // ---- what participants are told
  /// That thread arrives, or waits for its arrival once more.
  void begins(int process, const std::string& thread) { of_[process].at_it.insert(thread); }
  /// Its threads share a barrier, and each of them may be told what became of another one's
  /// arrival.
  void shares(int process) { of_[process].one_thread = false; }
  /// It has been told what became of its arrival.
  void knows(int process, const std::string& thread) { of_[process].at_it.erase(thread); }
  /// … and where nothing is late, `soon` after its phase has ended, and it has begun to wait.
  void passes(int process, nanos asked, nanos now, nanos waits_since = 0, nanos soon = never);
  void told_broken(int process);
  /// It was told that nobody knows whether its phase ended or broke.
  void told_unknown(int process);
  /// The same, while the store knows it still if it was carried out.
  void told_too_soon(int process) const;
  /// Nobody is away for so long that its lease ends.
  void never_breaks() noexcept { breaks_never_ = true; }
  /// A process ends, and what it has there ends with it.
  void a_process_goes() noexcept { breaks_never_ = false; }
  void refused_as_full(int process, nanos asked);
  /// An arrival that stands, and that nobody waits for; nothing went wrong since `calm_since`.
  void not_in_time(int process, nanos asked, nanos now, nanos calm_since, nanos bound);
  /// It got an error that leaves open what became of its arrival.
  void in_doubt(int process) { of_[process].exact = false, ++of_[process].taken_up; }
  /// The process's session goes, in order.
  void ends(int process) const;

 private:
  struct place {
    int process = 0;
    bool waits = false;
    bool for_good = false;
    bool alone = false;    ///< the last to come, which has to call the others
    bool unnamed = false;  ///< the record does not say whose it is: perhaps it has dropped out
  };
  struct told {
    std::deque<nanos> openings;  ///< of each of its participants, until one is told
    nanos broke_at = never;      ///< … and nobody has been told
    std::uint64_t broken = 0;    ///< participants of phases that broke
    std::uint64_t waited = 0;    ///< … of which so many were waiting
    std::uint64_t told_so = 0;
    std::uint64_t unknown = 0;  ///< … were told that nobody knows what became of theirs
    std::uint64_t standing = 0;
    std::uint64_t taken_up = 0;   ///< arrivals of which a later one may be told what became
    std::set<std::string> at_it;  ///< threads that have arrived, and do not know what came of it
    bool late = false;            ///< so a thread may have more than one place
    bool exact = true;
    bool one_thread = true;
  };
  using places = std::map<owner, place>;

  places read(const holdfast::store::permits_record& r,
              const std::function<int(std::string_view)>& process_of) const;
  void opens_and_breaks(const places& next, nanos now);
  void arrive_again(const places& next);
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
  std::size_t went_early_ = 0;  ///< left a phase that was complete, before the others were called
  places there_;
  places broken_;  ///< those of phases that broke
  std::map<owner, int> granted_;
  bool for_good_ = false;
  std::set<owner> left_, arrived_;
  std::set<owner> given_up_;         ///< nobody is told any more what becomes of them
  std::map<owner, int> process_of_;  ///< of each arrival
  std::map<int, told> of_;
  nanos full_until_ = -1;
  bool breaks_never_ = false;
  bool another_record_ = false;
  bool forgot_ = false;
};

}  // namespace simulation
