#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "simulation/judge.hpp"
#include "simulation/world.hpp"

namespace simulation {

/// The permits of an expiring_semaphore. Each outlives the session that got it. It ends by itself,
/// or when a program that knows its id releases it.
class permit_book {
 public:
  struct permit {
    std::string id;
    int hold = 0;            ///< the judge's number; 0: it was never certain
    nanos since = 0;         ///< when the caller received it
    nanos surely_until = 0;  ///< it has not ended before this time
    nanos over_after = 0;    ///< it has ended after this time; `never`: unknown
    nanos longest = 0;       ///< the longest time that was requested
    int under_way = 0;       ///< calls under way that may change it
    int calls = 0;           ///< calls that have begun
    bool let_go = false;     ///< a thread has begun to release it
    bool in_doubt = false;   ///< a call's outcome is unknown: it may still be carried out
    bool over = false;
  };

  permit_book(judge& to, std::string name, std::uint32_t capacity)
      : judge_(to), name_(std::move(name)), capacity_(capacity) {}

  const std::string& name() const noexcept { return name_; }

  // ---- acquiring a permit
  void asks() { ++asking_, ++asked_; }
  /// No permit was received, but one may have been granted until then.
  void asks_no_longer(nanos perhaps_until);
  /// Whether there was room for one more all the time: nobody has asked since `asked_before`.
  bool had_room(std::uint64_t at_most_before, int asked_before) const noexcept {
    return at_most_before < capacity_ && asked_ == asked_before;
  }
  /// The greatest number of permits that may exist.
  std::uint64_t at_most(nanos now);
  int asked() const noexcept { return asked_; }
  /// The store granted it at `given` or later.
  permit& got(judge::grant g, std::string id, nanos given, nanos lease, nanos now);

  // ---- by its id
  //
  // One of the permits that may exist, or of those that are over; null if there is none.
  permit* one_of_those(bool over, std::uint64_t which, nanos now);
  /// A call about a permit, and what was known before it.
  struct call {
    permit* of = nullptr;
    nanos asked = 0;
    nanos surely_until = 0;
    nanos over_after = 0;
    int number = 0;
    bool alone = false;
  };
  call begins_to_extend(permit& of, nanos lease, nanos now);
  call begins_to_give_back(permit& of, nanos now);
  /// What excuses the call's answer. `lasts`: only a defect makes the permit end early; `ends`:
  /// only a defect makes it last longer.
  struct excuses {
    bool lasts = true;
    bool ends = true;
  };
  void extended(const call& by, bool so, nanos lease, nanos now, excuses none);
  void given_back(const call& by, bool so, nanos now, excuses none);
  /// The call failed.
  static void in_doubt(const call& by, nanos now);
  void seen_free(std::uint32_t n, nanos asked, nanos now) const;

  // ---- faults
  //
  // Earlier knowledge is void, also of permits that the store grants before then.
  void forgot(nanos until);
  /// Brings the judge's view up to now.
  void goes_on(nanos now);
  bool has_a_holder(nanos now);

 private:
  call begins(permit& of, nanos now);
  static bool ends_alone(const call& by) noexcept;
  void judge_answer(const call& by, bool so, bool only, nanos now, excuses none,
                    const char* what) const;

  judge& judge_;
  std::string name_;
  std::uint32_t capacity_;
  std::deque<permit> all_;  ///< a deque, so addresses stay valid
  int asking_ = 0;
  int asked_ = 0;
  std::deque<nanos> perhaps_;
  nanos void_until_ = -1;
};

}  // namespace simulation
