#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "simulation/judge.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// Which thread waits for which, as the threads themselves know it: a ring of them would wait for
/// ever. Only holds that count for session_options::detect_deadlocks: lock() and unlock().
class ring_book {
 public:
  /// `within`: so soon a ring is found where nothing goes wrong.
  ring_book(judge& to, world& w, bool exclusive) : judge_(to), world_(w), exclusive_(exclusive) {}

  // ---- what the thread that calls does
  /// `limited`: for some time at most.
  void waits(const process& of, const std::string& name, bool shared, bool limited);
  void waits_no_longer();
  void has(const process& of, const std::string& name, bool shared, std::stop_token lost);
  void lets_go(const std::string& name);
  /// Its wait has ended because it would have been for ever. `calm`: nothing goes wrong.
  void told(bool calm);

  void died(const process& of);
  /// Looks now; nothing went wrong since `calm_since`, and then a ring is found within `bound`.
  void look(nanos calm_since, nanos bound);
  nanos longest() const noexcept { return longest_; }

 private:
  struct wait {
    int number = 0;  ///< greater is younger
    const process* of = nullptr;
    std::string name;
    bool shared = false;
    nanos began = 0;
    std::set<int> ring{};  ///< the numbers of those in it with this one; of the last one
    nanos ring_since = never;
  };
  struct hold {
    const fiber* by = nullptr;
    const process* of = nullptr;
    bool shared = false;
    std::stop_token lost{};
  };

  void look();
  std::set<int> ring_of(const fiber* who) const;
  bool leads_to(const fiber* from, const fiber* to, std::set<const fiber*>& seen,
                std::set<int>& ring) const;
  std::string describe(const std::set<int>& ring) const;

  judge& judge_;
  world& world_;
  bool exclusive_;
  std::map<const fiber*, wait> waits_;
  std::multimap<std::string, hold> holds_;
  std::set<std::set<int>> told_;  ///< rings of which one was told
  std::map<int, nanos> began_;    ///< of each wait
  std::set<int> limited_;
  int last_ = 0;
  nanos longest_ = 0;
};

}  // namespace simulation
