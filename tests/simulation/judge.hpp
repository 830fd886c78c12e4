#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "simulation/trace.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// Decides whether what happened may happen. The judge sees the true time, and relies only on what
/// a holder could act on: check() passed at two moments, so the lock was held between them.
class judge {
 public:
  /// `where`, the kind of store, precedes each report.
  judge(world& w, trace& to, std::string where) : world_(w), trace_(to), where_(std::move(where)) {}

  /// The rule that was broken first; the run ends with it.
  struct verdict {
    std::string rule;
    std::string what;
  };
  const std::optional<verdict>& found() const noexcept { return found_; }
  void violated(std::string rule, std::string what);
  /// Rules known to be broken that a search skips: a part of each one's text.
  static std::vector<std::string>& ignored();

  struct grant {
    const process* of = nullptr;
    std::string name;
    std::uint32_t weight = 1;
    std::uint32_t capacity = 1;
    std::uint64_t fence = 0;
    nanos asked = 0;       ///< when the acquisition began
    std::stop_token lost;  ///< notifies the holder of a loss
    bool outlives_process = false;
    bool of_another_kind = false;  ///< its weight is that of all others
  };
  /// check() passed for the first time, and was called at `then`. Returns the number that the other
  /// functions take.
  int granted(grant g, nanos then);
  /// check() passed once more.
  void still_held(int id, nanos then);
  /// The lock is held in another mode now, or the holder relies on less.
  void changed(int id, std::uint32_t weight, std::uint64_t fence, nanos then);
  /// The holder asks for a weaker mode, which it may have already.
  void relies_on_less(int id, std::uint32_t weight, std::uint64_t fence) {
    if (hold* const mine = find(id)) changed(id, weight, fence, mine->last);
  }
  /// From now on the holder does not rely on the lock.
  void given_up(int id);
  /// The holder does not rely on the lock during a wait.
  void put_aside(int id);
  /// The wait that put the lock aside has shown that it was held all the time.
  void kept(int id, nanos then);

  /// Gives up everything that this thread holds.
  void given_up_by(const fiber* who);

  void died(const process& of);
  /// The store lost its data, up to `until`. A holder from before, or a thread to which such a
  /// holder handed the lock over, may overlap with another holder, and learns of that by `told_by`.
  void forgot(nanos until, nanos told_by);
  /// The server has ended the connection that holds what was granted at `granted_at` (by the
  /// server's clock), and may grant it to others at once. The holder need not know of that before
  /// `told_by`; if its process is suspended then, not before the process continues, unless
  /// `without_excuse`.
  void connection_ended(std::int64_t granted_at, nanos told_by, bool without_excuse = false);
  /// An operator begins to take away the hold with this fence, or what that process holds of the
  /// name. Returns the number for taken().
  int taken_away(const std::string& name, int from, std::uint64_t fence);
  /// The operator's call has ended: it takes nothing more away.
  void taken(int which);
  /// The call ended and found that the hold had gone before: the present holder must not lose it.
  void took_nothing(int which);
  /// The lock was taken away; the holder must know by `told_by`.
  void must_be_told(const std::string& name, std::uint64_t fence, nanos told_by);
  /// An operator's call has certainly taken the hold with the fence that it named.
  void has_taken(int which);
  /// Whether such a call had ended when the holder looked last.
  bool was_certainly_taken(int id);
  /// Whether a thread of the process relies on the hold with this fence.
  bool relies_on(int process, const std::string& name, std::uint64_t fence) const;
  /// Whether an operator took anything of that name, or of any name if it is empty.
  bool was_taken(const std::string& name) const {
    return name.empty() ? !taken_.empty() : taken_.contains(name);
  }
  /// The store's fences need not grow once it has lost its counters.
  void forgot_fences(nanos when) {
    past_.clear();
    fences_from_ = when;
  }
  /// How often an operator has begun to take something away.
  int takes() const noexcept { return takes_; }
  /// A server's clock has jumped: only fences are promised now.
  void clock_stepped() noexcept { only_fences_ = true; }
  /// The process has run again for long enough to have noticed its losses.
  void is_awake(const process& of);

  /// For the rule that nobody waits in vain. `without_lost` ignores holders that were notified of
  /// their loss.
  bool has_a_holder(const std::string& name, bool without_lost = false) const;
  /// Whether one thread certainly held the lock, as its own kind, during all of that span.
  bool was_held(const std::string& name, nanos from, nanos to) const;
  /// Whether the lock is held, and by readers only.
  bool only_shared(const std::string& name) const;
  /// When a holder was last seen to hold it.
  nanos last_had(const std::string& name) const;
  /// The weight that is held in total.
  std::uint64_t weight_of(const std::string& name) const;
  /// When a holder that holds nothing of it any more was last seen to hold it.
  nanos last_gone(const std::string& name) const;
  /// When the lock was granted last.
  nanos last_granted(const std::string& name) const;
  /// Since when readers have held the lock with this fence.
  nanos shared_since(const std::string& name, std::uint64_t fence) const;
  /// Whether threads of the process have certainly held the name since before `since`, and none
  /// with this fence.
  bool holds_only_others(const process& of, const std::string& name, std::uint64_t fence,
                         nanos since) const;
  std::uint64_t grants() const noexcept { return grants_; }

 private:
  struct hold {
    int id;
    grant g;
    nanos first;
    nanos last;
    bool open;
    std::string who;
    const fiber* by = nullptr;
    nanos ended = never;  ///< with its connection, or by an operator's call
    nanos told_by = never;
    bool without_excuse = false;
    int ended_by = 0;    ///< the operator's call, if any
    bool lost = false;   ///< the store may have forgotten it
    bool aside = false;  ///< may turn out to be held
  };

  std::string describe(const hold& h) const;
  void check_capacity(const hold& mine);
  void check_room(const hold& mine);
  void check_fence(const hold& mine);
  void check_told(const hold& mine);
  void has_ended(hold& h) const;
  bool was_forgotten(const hold& h) const;
  bool excused(const hold& h) const noexcept { return h.lost && h.first <= forgot_at_; }
  void forget_old();
  hold* find(int id);

  world& world_;
  trace& trace_;
  std::string where_;
  std::optional<verdict> found_;
  std::vector<hold> holds_;
  /// The greatest fences of former holders: of those with a part of the capacity, and of those with
  /// all of it.
  struct past {
    std::uint64_t part = 0;
    std::uint64_t whole = 0;
    std::string part_by;
    std::string whole_by;
  };
  std::map<std::string, past> past_;
  struct end_of_connection {
    std::int64_t granted_at;
    nanos at;
    nanos told_by;
    std::string name{};  ///< only the hold with this name
    int from = 0;        ///< or all that this process held of it
    nanos until = 0;     ///< up to this time
    int id = 0;
    bool without_excuse = false;
    bool certain = false;
  };
  std::vector<end_of_connection> ends_;
  std::set<std::string> taken_;
  int takes_ = 0;
  std::set<std::string> fenced_;  ///< names of which a holder had a fence
  nanos lost_until_ = -1;
  nanos forgot_at_ = -1;
  nanos fences_from_ = -1;
  bool only_fences_ = false;
  int last_id_ = 0;
  std::uint64_t grants_ = 0;
};

}  // namespace simulation
