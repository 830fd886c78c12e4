#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "simulation/judge.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// Which thread waits for which, as the threads themselves know it: threads in a ring would wait
/// for ever. Covers only the holds that session_options::detect_deadlocks covers: those of lock()
/// and unlock().
class ring_book {
 public:
  /// `within`: the longest time until a ring is found where nothing goes wrong.
  ring_book(judge& to, world& w, bool exclusive) : judge_(to), world_(w), exclusive_(exclusive) {}

  // ---- what the calling thread does
  //
  // `limited`: the wait has a time limit.
  void waits(const process& of, const std::string& name, bool shared, bool limited);
  void waits_no_longer();
  void has(const process& of, const std::string& name, bool shared, std::stop_token lost);
  void lets_go(const std::string& name);
  /// The thread's wait was ended as a deadlock. `calm`: nothing goes wrong.
  void told(bool calm);

  void died(const process& of);
  /// Checks for rings now. Nothing went wrong since `calm_since`; since then, a ring must be found
  /// within `bound`.
  void look(nanos calm_since, nanos bound);
  nanos longest() const noexcept { return longest_; }

 private:
  struct wait {
    int number = 0;  ///< a greater number is a younger wait
    const process* of = nullptr;
    std::string name;
    bool shared = false;
    nanos began = 0;
    std::set<int> ring{};  ///< the numbers of the waits in the last ring it was part of
    nanos ring_since = never;
  };
  struct hold {
    const fiber* by = nullptr;
    const process* of = nullptr;
    bool shared = false;
    std::stop_token lost{};
  };

  void look();
  static bool is_in_the_way(const hold& h, const fiber* who, const wait& w);
  bool is_the_only_one(const std::set<int>& ring) const;
  std::set<int> ring_of(const fiber* who) const;
  bool leads_to(const fiber* from, const fiber* to, std::set<const fiber*>& seen,
                std::set<int>& ring) const;
  std::string describe(const std::set<int>& ring) const;

  judge& judge_;
  world& world_;
  bool exclusive_;
  std::map<const fiber*, wait> waits_;
  std::multimap<std::string, hold> holds_;
  std::set<std::set<int>> told_;  ///< rings of which one thread was told
  std::map<int, nanos> began_;    ///< when each wait began
  std::set<int> limited_;
  int last_ = 0;
  nanos longest_ = 0;
};

}  // namespace simulation
