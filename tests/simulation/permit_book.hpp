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
    int hold = 0;            ///< the judge's number; 0: it was never sure
    nanos since = 0;         ///< when the caller had it
    nanos surely_until = 0;  ///< it has not ended before …
    nanos over_after = 0;    ///< … and has ended then; `never`: not known
    nanos longest = 0;       ///< that it was to last
    int under_way = 0;       ///< calls that may change it
    int calls = 0;           ///< … that have begun
    bool let_go = false;     ///< a thread has begun to give it back
    bool in_doubt = false;   ///< nobody knows what became of a call: it may still do its work
    bool over = false;
  };

  permit_book(judge& to, std::string name, std::uint32_t capacity)
      : judge_(to), name_(std::move(name)), capacity_(capacity) {}

  const std::string& name() const noexcept { return name_; }

  // ---- getting one
  void asks() { ++asking_, ++asked_; }
  /// Nothing was got; until then it may be there all the same.
  void asks_no_longer(nanos perhaps_until);
  /// Whether there was room for one more all the time: nobody has asked since `asked_before`.
  bool had_room(std::uint64_t at_most_before, int asked_before) const noexcept {
    return at_most_before < capacity_ && asked_ == asked_before;
  }
  /// So many may be there.
  std::uint64_t at_most(nanos now);
  int asked() const noexcept { return asked_; }
  /// The store gave it at `given` or later.
  permit& got(judge::grant g, std::string id, nanos given, nanos lease, nanos now);

  // ---- by its id
  /// One of those that may be there, or of those that are over; null if there is none.
  permit* one_of_those(bool over, std::uint64_t which, nanos now);
  /// A call about one, and what was known before.
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
  /// What it was told. `lasts`: nothing but a defect makes it end early; `ends`: …, last longer.
  struct excuses {
    bool lasts = true;
    bool ends = true;
  };
  void extended(const call& by, bool so, nanos lease, nanos now, excuses none);
  void given_back(const call& by, bool so, nanos now, excuses none);
  /// It got an error.
  static void in_doubt(const call& by, nanos now);
  void seen_free(std::uint32_t n, nanos asked, nanos now) const;

  // ---- what befalls them
  /// What was known holds no longer, also of those that the store gives before then.
  void forgot(nanos until);
  /// Up to now, for the judge.
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
  std::deque<permit> all_;  ///< an address is good for ever
  int asking_ = 0;
  int asked_ = 0;
  std::deque<nanos> perhaps_;
  nanos void_until_ = -1;
};

}  // namespace simulation
