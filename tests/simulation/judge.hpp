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

/// Says whether what happened may happen. It sees the true time, and believes of a holder only what
/// the holder could act on: that check() passed, at two moments, so that it held between them.
class judge {
 public:
  /// `where` begins what it says: the kind of store.
  judge(world& w, trace& to, std::string where) : world_(w), trace_(to), where_(std::move(where)) {}

  /// What broke a rule first; the run ends with it.
  struct verdict {
    std::string rule;
    std::string what;
  };
  const std::optional<verdict>& found() const noexcept { return found_; }
  void violated(std::string rule, std::string what);
  /// Rules that are known to be broken, while others are looked for: a part of their text each.
  static std::vector<std::string>& ignored();

  struct grant {
    const process* of = nullptr;
    std::string name;
    std::uint32_t weight = 1;
    std::uint32_t capacity = 1;
    std::uint64_t fence = 0;
    nanos asked = 0;       ///< when the acquisition began
    std::stop_token lost;  ///< what the holder is told by
    bool outlives_process = false;
  };
  /// check() passed for the first time; it was called then. A number for the others.
  int granted(grant g, nanos then);
  /// check() passed once more.
  void still_held(int id, nanos then);
  /// It is held in another way now, or the holder relies on less.
  void changed(int id, std::uint32_t weight, std::uint64_t fence, nanos then);
  /// The holder asks for less: it may have that already.
  void relies_on_less(int id, std::uint32_t weight, std::uint64_t fence) {
    if (hold* const mine = find(id)) changed(id, weight, fence, mine->last);
  }
  /// From now on the holder does not rely on it.
  void given_up(int id);
  /// The same for the time of a wait, …
  void put_aside(int id);
  /// … which has shown that it was held all the time.
  void kept(int id, nanos then);

  /// The same, of all that this thread has.
  void given_up_by(const fiber* who);

  void died(const process& of);
  /// Until then the store lost its data. A holder from before, or a thread to which it passed the
  /// lock on, may find another holder beside it, and knows of that at `told_by`.
  void forgot(nanos until, nanos told_by);
  /// The server has ended the connection that has what it granted then, by its clock, and may give
  /// it to others at once: the holder need not be told before `told_by`; and if
  /// its process stands still then, not before it goes on, unless that is no excuse.
  void connection_ended(std::int64_t granted_at, nanos told_by, bool without_excuse = false);
  /// An operator begins to take what has this fence, or what that process has of the name. A number
  /// for taken().
  int taken_away(const std::string& name, int from, std::uint64_t fence);
  /// The operator's call is over: it takes nothing any more.
  void taken(int which);
  /// … and found that it had gone before: its present holder was not to lose it.
  void took_nothing(int which);
  /// It has been taken.
  void must_be_told(const std::string& name, std::uint64_t fence, nanos told_by);
  /// Whether an operator took anything of that name; or of any, if it is empty.
  bool was_taken(const std::string& name) const {
    return name.empty() ? !taken_.empty() : taken_.contains(name);
  }
  /// A store whose fences need not grow once it has lost its counters.
  void forgot_fences(nanos when) {
    past_.clear();
    fences_from_ = when;
  }
  /// A server's clock has jumped: only fences are promised now.
  void clock_stepped() noexcept { only_fences_ = true; }
  /// It has run again for long enough to have noticed what it lost meanwhile.
  void is_awake(const process& of);

  /// For the rule that nobody waits in vain. Perhaps without those that were told of its end.
  bool has_a_holder(const std::string& name, bool without_lost = false) const;
  /// Whether it is held, and by readers only.
  bool only_shared(const std::string& name) const;
  /// When a holder was last seen to have it.
  nanos last_had(const std::string& name) const;
  /// So much of it is held …
  std::uint64_t weight_of(const std::string& name) const;
  /// … and a holder that has none of it any more was last seen to have it then.
  nanos last_gone(const std::string& name) const;
  /// When somebody was granted it last.
  nanos last_granted(const std::string& name) const;
  /// Since when readers have had what has this fence.
  nanos shared_since(const std::string& name, std::uint64_t fence) const;
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
    nanos ended = never;  ///< with its connection; …
    nanos told_by = never;
    bool without_excuse = false;
    int ended_by = 0;    ///< the operator's call
    bool lost = false;   ///< the store may have forgotten it
    bool aside = false;  ///< may turn out to be held
  };

  std::string describe(const hold& h) const;
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
    std::string name{};  ///< of this one only
    int from = 0;        ///< … and all that this process had of it
    nanos until = 0;     ///< … so long
    int id = 0;
    bool without_excuse = false;
  };
  std::vector<end_of_connection> ends_;
  std::set<std::string> taken_;
  nanos lost_until_ = -1;
  nanos forgot_at_ = -1;
  nanos fences_from_ = -1;
  bool only_fences_ = false;
  int last_id_ = 0;
  std::uint64_t grants_ = 0;
};

}  // namespace simulation
