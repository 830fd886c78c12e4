#include "simulation/rate_actor.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

namespace {

using holdfast::errc;

/// An asking that may take something, for as long as it lasts.
class asking {
 public:
  asking(rate_book& of, world& w) : of_(of), world_(w) { of_.begins(); }
  asking(const asking&) = delete;
  ~asking() { of_.ends(world_.now()); }

 private:
  rate_book& of_;
  world& world_;
};

struct limiter_actor : actor {
  holdfast::rate_limiter& at;
  rate_book& book;

  void act() const {
    const auto n = std::min<std::uint64_t>(s.weight, book.burst());
    const asking now(book, of.here);
    if (s.deed == 0) return refund(n);
    if (s.deed == 1) {
      const cost one(*this, "peek", 1);
      (void)at.peek(n);
      return;
    }
    of.log.add("takes " + std::to_string(n) + " tokens");
    if (s.deed < 5) {
      const cost one(*this, "try_take", 1);
      return judge(at.try_take(n), n);
    }
    // What was reserved and is not waited for is given back, perhaps later.
    const int back = book.refund_begins(n, asked);
    const auto decision = at.take_for(n, duration(s.wait), {}, stop());
    if (decision) book.refund_ends(back, asked - 1);
    judge(decision, n);
  }

  void judge(const holdfast::rate_decision& d, std::uint64_t n) const {
    of.log.add(d ? "has them" : "is refused");
    if (d) return book.took(name, n, asked, of.here.now());
    if (s.deed < 5) book.refused(name, n, asked, of.whole.calm());
  }

  // Only what it has.
  void refund(std::uint64_t n) const {
    const auto decision = at.try_take(n);
    judge(decision, n);
    if (!decision) return;
    of.log.add("gives back " + std::to_string(n) + " tokens");
    const int which = book.refund_begins(n, asked);
    const cost one(*this, "refund", 1);
    at.refund(n);
    book.refund_ends(which, of.here.now());
  }
};

struct admission_actor : actor {
  holdfast::admission& at;
  holdfast::semaphore& permits;
  rate_book& book;

  holdfast::admitted ask(std::uint64_t n) const {
    if (s.deed < 4) {
      const cost one(*this, "try_admit", 1);
      return at.try_admit(n);
    }
    return at.admit_for(duration(s.wait), n, {}, stop());
  }

  void act() const {
    const auto n = std::min<std::uint64_t>(s.weight, book.burst());
    of.log.add("asks to be let in with " + std::to_string(n) + " tokens");
    holdfast::admitted in;
    {
      const asking now(book, of.here);
      const int back = book.refund_begins(n, asked);
      in = ask(n);
      if (in) book.refund_ends(back, asked - 1);
    }
    if (!in) return of.log.add("is refused");
    book.took(name, n, asked, of.here.now());
    stay(in);
  }

  void stay(holdfast::admitted& in) const {
    nanos then = of.here.now();
    in.permit.check();
    const int id = of.rules.granted({&p, scene::name_of(s.name - 2), 1, permits.capacity(),
                                     in.permit.fence(), asked, in.permit.lost()},
                                    then);
    for (int i = 0; i < 4; ++i) {
      of.here.sleep(s.hold / 4);
      then = of.here.now();
      in.permit.check();
      of.rules.still_held(id, then);
    }
    of.rules.given_up(id);
    of.log.add("goes out");
    if (s.back == step::end::destroy) return;
    const auto e = in.permit.release();
    if (e) judge_error(static_cast<errc>(e.value()), "release: " + e.message());
  }
};

}  // namespace

std::unique_ptr<holdfast::rate_limiter> make_limiter(const holdfast::session& s, std::string name,
                                                     const name_plan& of) {
  holdfast::rate_rule rule;
  rule.tokens = of.capacity;
  rule.per = std::chrono::microseconds(of.per / microsecond);
  rule.burst = of.burst;
  rule.how = of.at_once ? holdfast::refill::interval : holdfast::refill::greedy;
  return std::make_unique<holdfast::rate_limiter>(s, std::move(name),
                                                  std::vector<holdfast::rate_rule>{rule});
}

void act_by_rates(const actor& who, belongings& all) {
  const std::size_t i = who.s.name;
  const auto& mine = all.of_meetings[i];
  auto& rates = who.of.notes.rates;
  if (mine.limiter) return limiter_actor{{who}, *mine.limiter, rates.at(i)}.act();
  admission_actor{{who}, *mine.admission, *all.of_locks[i - 2].semaphore, rates.at(i - 1)}.act();
}

}  // namespace simulation
