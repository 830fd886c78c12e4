#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/judge.hpp"
#include "simulation/permit_book.hpp"
#include "simulation/phases.hpp"
#include "simulation/plan.hpp"
#include "simulation/ring_book.hpp"

namespace simulation {

/// What is known of a latch: the count that is certain, and the count that is possible.
class latch_book {
 public:
  latch_book(judge& to, const name_plan& of) : judge_(to), count_(of.capacity) {}

  void begins(std::uint32_t n) { perhaps_ += n; }
  void counted(std::uint32_t n, nanos now);
  /// The count was certainly not carried out.
  void not_counted(std::uint32_t n) { perhaps_ -= n; }
  /// The count was refused, perhaps before it was tried.
  void refused(std::uint32_t n, bool as_too_many);
  void seen_open(bool open, std::uint32_t certain_before) const;
  void seen_remaining(std::uint32_t left, std::uint32_t certain_before) const;
  void waited_in_vain(nanos since, nanos now, nanos bound) const;
  /// Checks the remaining count at the server.
  void stands(std::uint32_t left) const;
  void forgot() { certain_ = 0, forgot_ = true; }
  bool has_forgotten() const noexcept { return forgot_; }
  std::uint32_t certain() const noexcept { return certain_; }

 private:
  judge& judge_;
  std::uint32_t count_;
  std::uint32_t certain_ = 0;
  std::uint32_t perhaps_ = 0;
  nanos opened_at_ = never;
  bool forgot_ = false;
};

/// What is known of a barrier: how often each participant has arrived and continued.
class barrier_book {
 public:
  barrier_book(judge& to, const name_plan& of) : judge_(to), count_(of.capacity) {}

  void begins(const std::string& who) { ++begun_[who]; }
  /// The store has confirmed this number of arrivals.
  void arrived(nanos now);
  void drops(const std::string& who) { dropped_[who] = begun_[who]; }
  void completes(bool calm);
  void goes_on(const std::string& who, bool calm, bool completes);
  void waited_in_vain(const std::string& who, nanos now, nanos bound) const;
  bool out(const std::string& who) const { return out_.contains(who); }
  void leaves(const std::string& who) { out_.insert(who); }
  /// A process leaves after some of its participants had arrived; their arrivals do not count any
  /// more.
  void takes_out() noexcept { taken_out_ = true; }
  bool dropped_any() const noexcept { return !dropped_.empty(); }

 private:
  /// The number of participants that have arrived in that phase or have dropped out. A thread takes
  /// part in each phase, so its n-th arrival belongs to the n-th phase, and none of its other
  /// arrivals counts there.
  std::uint64_t arrived_in(std::uint64_t phase) const;

  judge& judge_;
  std::uint32_t count_;
  std::map<std::string, std::uint64_t> begun_;
  std::map<std::string, std::uint64_t> dropped_;  ///< the arrival that dropped out
  std::map<std::string, std::uint64_t> went_on_;
  std::set<std::string> out_;
  std::vector<nanos> confirmed_;
  bool taken_out_ = false;
  std::uint64_t completed_ = 0;
};

/// Tokens that passed a limiter, each at some moment of a span.
class rate_book {
 public:
  rate_book(judge& to, const name_plan& of)
      : judge_(to), rule_(of), least_burst_(of.burst), ahead_(of.local == 0 ? 0 : used_within) {}
  /// How long tokens that were taken ahead may be used.
  static constexpr nanos used_within = 100 * millisecond;

  /// The tokens passed at some moment between `from` and `to`. The moment may lie in the future if
  /// they were reserved at `before`.
  void took(std::string name, std::uint64_t n, nanos from, nanos to, nanos before = 0);
  /// Tokens that count as taken now are given back: as many more may pass.
  int refund_begins(std::uint64_t n, nanos asked);
  void refund_ends(int which, nanos now) { refunds_[static_cast<std::size_t>(which)].to = now; }
  /// A call that may take tokens begins; until it ends, nobody knows whether it took them.
  void begins() { ++asking_; }
  void ends(nanos now) { --asking_, last_ = now; }
  /// Whether at most one call is under way, and no other call has ended since `asked`.
  bool is_alone(nanos asked) const noexcept { return asking_ <= 1 && last_ < asked; }
  /// A call that may have reserved tokens for a time until then has ended, perhaps without them.
  void may_have_reserved(nanos until) noexcept { last_due_ = std::max(last_due_, until); }
  /// Whether no call has reserved tokens for a later time. Otherwise a refund may bring back less.
  bool reserves_nothing(nanos now) const noexcept { return last_due_ < now; }
  /// The largest number of tokens that can come back in a span of that length.
  std::uint64_t comes_back_in(nanos length) const noexcept;
  /// Whether the bucket is certainly full, and so has to give n tokens.
  bool would_give(std::uint64_t n, nanos asked) const;
  /// A caller received this many tokens, or gave them back.
  void has(std::uint64_t n) noexcept { had_ += n; }
  void gave_back(std::uint64_t n) noexcept { had_ -= n; }
  /// The fate of so many tokens is unknown.
  void in_doubt(std::uint64_t n) noexcept { sure_ = false, doubted_ += n; }
  bool sure() const noexcept { return sure_; }
  /// Checks, at the end of a run, the number of tokens left of the whole bucket.
  void judge_rest(const std::string& name, std::uint64_t left) const;
  /// Checks, at the end of a run, that each call has taken its tokens once at most.
  void judge_twice(const std::string& name, std::uint64_t left) const;
  /// Tokens reserved by a caller that has the answer. `due` is by the store's clock, in
  /// microseconds. Returns the number that the next two functions take.
  int reserved(std::uint64_t n, std::int64_t due, nanos now);
  void gives_up(int which, nanos now) { reserved_[static_cast<std::size_t>(which)].given_up = now; }
  void gave_up(int which, nanos now) { reserved_[static_cast<std::size_t>(which)].gone = now; }
  /// The largest number of tokens that this reservation brings back when it is given up now: later
  /// ones need the rest.
  std::uint64_t comes_back_of(int which) const;
  /// Checks, at the end of a run, that the reservations given up are free again, except for what
  /// later reservations need to keep their time. A negative number is a debt.
  void judge_given_up(const std::string& name, std::int64_t left) const;
  /// A program uses rules that are twice as generous.
  void grows();
  /// A program uses stricter rules: no more tokens pass than under the previous ones.
  void shrinks() noexcept { changed_ = true; }
  void forgot(nanos until) { void_until_ = until; }
  nanos full_after() const noexcept;
  std::uint64_t burst() const noexcept { return least_burst_; }

 private:
  struct span {
    std::uint64_t n;
    nanos from;
    nanos to;
    nanos before = 0;
  };
  struct reservation {
    std::uint64_t n;
    std::int64_t due;
    nanos answered;
    nanos given_up = never;  ///< being given up since then
    nanos gone = never;
  };
  /// The part of a given-up reservation, in microseconds of refill, that does not become free:
  /// reservations for which `beside` returns true, and which are due later, need it.
  template <class Beside>
  std::int64_t lost(const reservation& one, Beside beside) const;
  void judge_window(const std::string& name, nanos from, nanos to) const;

  judge& judge_;
  name_plan rule_;
  std::uint64_t least_burst_;
  nanos ahead_;
  bool changed_ = false;  ///< the rules have been replaced
  bool grew_ = false;     ///< … by more generous ones
  bool sure_ = true;
  std::uint64_t had_ = 0;
  std::uint64_t doubted_ = 0;
  std::deque<span> taken_;
  std::vector<span> refunds_;
  std::vector<reservation> reserved_;
  int asking_ = 0;
  nanos last_ = -1000 * second;
  nanos last_due_ = -1;
  nanos void_until_ = -1;
};

/// The leaders by their terms: each leads once, and an observer sees them without a gap.
class election_book {
 public:
  explicit election_book(judge& to) : judge_(to) {}

  /// The leader of that term requested it at `asked`, and has known of it since `since`.
  void leads(std::uint64_t term, nanos asked, nanos since = 0) {
    terms_.emplace(term, led{asked, since});
  }
  void leads(std::uint64_t term, nanos asked, nanos since, int process, const std::string& note) {
    leads(term, asked, since);
    leader_is(std::to_string(term), term, process, note);
  }
  /// Somebody is shown who leads in that term, perhaps before the leader knows of it.
  void shown(const std::string& name, std::uint64_t term, int process, const std::string& note) {
    leader_is(name + ": " + std::to_string(term), term, process, note);
  }
  /// The leader of that term has resigned.
  void resigned(std::uint64_t term, nanos now) { gone_.emplace(term, now); }
  /// An observer that began at `began` sees `term`, as the next one after `before` (0: none).
  void seen(const std::string& name, nanos began, std::uint64_t before, std::uint64_t term,
            bool after_gap, bool calm) const;
  /// Until `now` the observer has seen no term after `last`.
  void seen_no_more(const std::string& name, nanos began, std::uint64_t last, nanos now) const;

 private:
  struct led {
    nanos asked;
    nanos since;
  };
  void leader_is(const std::string& where, std::uint64_t term, int process,
                 const std::string& note);

  judge& judge_;
  std::map<std::uint64_t, led> terms_;
  std::map<std::uint64_t, std::pair<int, std::string>> who_;  ///< process and note
  std::map<std::uint64_t, nanos> gone_;
};

/// What the waiters of a condition variable wait for: tokens that are added under the mutex.
struct condition_book {
  int tokens = 0;
  int waiting = 0;
  bool sure = true;  ///< each token was followed by a notification
  nanos idle_since = 0;
  std::map<int, int> waiting_of{};  ///< … by process
  bool died_with_it = false;        ///< a process died while a notification was under way
  bool failed = false;              ///< a notification, perhaps beside another one

  void sent(bool well, bool was_sure) {
    failed = failed || !well;
    sure = was_sure && !failed;
  }

  void waits(int process, bool so) {
    waiting += so ? 1 : -1;
    waiting_of[process] += so ? 1 : -1;
  }
  /// Its waiters wait no more. A notification that one of them had is lost with it.
  void died(int process) {
    waiting -= std::exchange(waiting_of[process], 0);
    died_with_it = died_with_it || !sure || tokens > 0;
  }
};

/// All books of a run, by the number of the name.
struct books {
  books(judge& to, const plan& of);
  void forgot(nanos until);
  /// The longest time until all limiters are full.
  nanos full_after() const noexcept;
  bool has_permits(const std::string& name, nanos now);
  /// Null where no server shows the effect of each command on a barrier.
  phase_book* phases_of(std::size_t name);
  /// Whether any participant dropped out of that barrier.
  bool any_dropped(std::size_t name) const;
  /// Each key of a limiter has a bucket, and so a book, of its own.
  static std::size_t number_of(std::size_t name, std::size_t key) { return 100 * (key + 1) + name; }

  std::map<std::size_t, latch_book> latches;
  std::map<std::size_t, barrier_book> barriers;
  std::map<std::size_t, phase_book> phases;
  std::map<std::size_t, rate_book> rates;
  std::map<std::size_t, election_book> elections;
  std::map<std::size_t, condition_book> conditions;
  std::map<std::size_t, permit_book> permits;
  std::optional<ring_book> rings;  ///< where the search for deadlocks is on
};

}  // namespace simulation
