#include "simulation/rate_actor.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulation/answers.hpp"
#include "simulation/encounters.hpp"

namespace simulation {

namespace {

using holdfast::errc;

using books_of_one = std::vector<rate_book*>;

/// A request that may take tokens, for as long as it is under way.
class asking {
 public:
  asking(const books_of_one& of, world& w) : of_(of), world_(w) {
    for (auto* const b : of_) b->begins();
  }
  asking(const asking&) = delete;
  ~asking() {
    for (auto* const b : of_) b->ends(world_.now());
  }

 private:
  const books_of_one& of_;
  world& world_;
};

// The planned rules: unchanged, twice as generous, or with half of the burst.
std::vector<holdfast::rate_rule> rules_of(const name_plan& of, bool are_changed) {
  const std::uint64_t times = are_changed && of.grows ? 2 : 1;
  const auto rule = [&](const name_plan& one) {
    holdfast::rate_rule r;
    r.tokens = one.capacity * times;
    r.per = std::chrono::microseconds(one.per / microsecond);
    r.burst = one.burst * times / (are_changed && of.shrinks ? 2 : 1);
    r.how = one.at_once ? holdfast::refill::interval : holdfast::refill::greedy;
    return r;
  };
  std::vector<holdfast::rate_rule> all{rule(of)};
  if (of.keys == 0) return all;
  all.push_back(rule(rule_of_a_key(of)));
  all.back().by = {"client"};
  return all;
}

constexpr const char* keys[] = {"one", "two", "three"};

bool all_arrives(const plan& p) {
  const bool only_set_back = std::all_of(p.faults.begin(), p.faults.end(), [&](const auto& f) {
    return p.seed >= troubled_seeds && f.what == fault_plan::kind::clock_back;
  });
  return p.network.lose_request == 0 && p.network.lose_reply == 0 && p.network.answers_all() &&
         only_set_back && p.machine.stall_per_100k == 0 &&
         2 * p.network.slowest_late < p.command_timeout;
}

// A caller that leaves before the answer has no tokens, and the library gives its tokens back,
// unless an answer or the store's data is lost.
bool leaves_nothing(const plan& p, errc why) {
  const bool left = why == errc::unavailable && all_arrives(p);
  return left || why == errc::timed_out || why == errc::cancelled;
}

// A negative number is a debt.
std::int64_t tokens_left(const holdfast::rate_state& now, const name_plan& of) {
  if (now.remaining > 0) return static_cast<std::int64_t>(now.remaining);
  const auto per = of.per / microsecond;
  return 1 - (now.wait.count() + per - 1) / per;
}

enum class rate_deed { refund, peek, try_take, take_for, reserve, change_rules };

rate_deed deed_of(const plan& p, const step& s) {
  if (s.deed == 0) return rate_deed::refund;
  if (s.deed == 1) return rate_deed::peek;
  if (p.about == theme::rates && s.deed == 4) return rate_deed::reserve;
  const auto& n = p.names[s.name];
  if ((n.grows || n.shrinks) && s.deed == 7) return rate_deed::change_rules;
  return s.deed < 5 ? rate_deed::try_take : rate_deed::take_for;
}

struct limiter_actor : actor {
  holdfast::rate_limiter& at;
  const holdfast::session& session;
  books_of_one books;
  holdfast::rate_key key;
  rate_deed what;

  void act() const {
    auto n = std::uint64_t{s.weight};
    for (const auto* const b : books) n = std::min(n, b->burst());
    if (what == rate_deed::change_rules) return change_rules();
    const asking now(books, of.here);
    try {
      ask(n);
    } catch (const holdfast::error& e) {
      const bool left = leaves_nothing(of.whole, e.reason());
      may_have_reserved();
      for (auto* const b : books) {
        if (!left || what == rate_deed::refund || what == rate_deed::reserve) b->in_doubt(n);
      }
      throw;
    }
  }

  void ask(std::uint64_t n) const {
    if (what == rate_deed::refund) return refund(n);
    if (what == rate_deed::reserve) return reserve(n);
    // The simulated servers of scripts and rows cannot list them.
    const bool lists = of.whole.store < store_kind::scripts && s.form % 2 == 1;
    if (what == rate_deed::peek && lists) return list();
    if (what == rate_deed::peek) {
      const cost one(*this, "peek", 1);
      (void)(without_waiting() ? value_of(async_peek(at, n, key)) : at.peek(n, key));
      return;
    }
    of.log.add("takes " + std::to_string(n) + " tokens");
    if (what == rate_deed::try_take) return judge(try_take(n), n);
    if (of.whole.seed >= unlike_seeds && s.looks) return take_when_they_come(n);
    const auto& whole = of.whole.names[s.name];
    const bool judged = of.whole.seed >= dividing_seeds && s.stop_after != never && of.punctual() &&
                        books.size() == 1 && whole.local == 0 && !whole.grows && !whole.shrinks;
    const auto before = judged ? left() : 0;
    const nanos due = judged ? of.here.now() + wait_for(n) : 0;
    const auto got = without_waiting() ? value_of(async_take(at, n, key, limit(), stop()))
                                       : at.take_for(n, duration(s.wait), key, stop());
    judge(got, n);
    if (judged && !got) judge_what_a_refusal_says(got, due);
    if (judged && !got) judge_what_a_refusal_took(before);
  }

  nanos wait_for(std::uint64_t n) const {
    return std::chrono::nanoseconds(at.peek(n, key).wait).count();
  }

  // Until the tokens would have come, from now on.
  void judge_what_a_refusal_says(const holdfast::rate_decision& d, nanos due) const {
    const nanos says = std::chrono::nanoseconds(d.wait).count();
    const nanos most = std::max<nanos>(due - of.here.now(), 0) + 20 * millisecond;
    if (!books.front()->is_alone(asked) || says <= most) return;
    of.rules.violated("a take that is refused says how long its tokens still need",
                      name + ": " + std::to_string(says / microsecond) + " us instead of " +
                          std::to_string(most / microsecond));
  }

  // A negative number is a debt.
  std::int64_t left() const {
    return tokens_left(at.peek(1, key).tightest(), of.whole.names[s.name]);
  }

  // While no other thread asks, tokens only come back. Those that were reserved are given back a
  // moment after the caller has gone.
  void judge_what_a_refusal_took(std::int64_t before) const {
    of.here.sleep(10 * millisecond);
    const auto after = left();
    if (!books.front()->is_alone(asked) || after >= before) return;
    of.rules.violated(
        "a take that is refused takes nothing",
        name + ": " + std::to_string(after) + " tokens instead of " + std::to_string(before));
  }

  // While no other thread asks, a bucket that is listed has no fewer tokens than before, and no
  // more than afterwards. A full one is not listed.
  void list() const {
    const auto& n = of.whole.names[s.name];
    const nanos began = of.here.now();
    const auto before = at.peek(1, key);
    const auto all = session.buckets(name);
    const auto after = at.peek(1, key);
    const bool alone =
        std::all_of(books.begin(), books.end(), [&](auto* b) { return b->is_alone(began); });
    if (!alone || !of.punctual() || n.grows || n.shrinks || n.local > 0) return;
    for (std::size_t i = 0; i < books.size(); ++i) {
      const std::vector<std::string> of_key =
          i == 0 ? std::vector<std::string>{} : std::vector{std::string(key.front().value)};
      const auto one =
          std::find_if(all.begin(), all.end(), [&](const auto& b) { return b.key == of_key; });
      judge_bucket(of.rules, name, one == all.end() ? nullptr : &*one, books[i]->burst(),
                   before.rules[i].remaining, after.rules[i].remaining);
    }
  }

  // Waits hardly longer than the tokens need. The store promises them, so only a very late answer
  // makes the wait a vain one.
  void take_when_they_come(std::uint64_t n) const {
    const auto before = at.peek(n, key);
    const nanos began = of.here.now();
    const nanos longest = std::chrono::nanoseconds(before.wait).count() + millisecond + s.soon;
    const auto got = without_waiting()
                         ? value_of(async_take(at, n, key, holdfast::wait_limit(duration(longest))))
                         : at.take_for(n, duration(longest), key);
    judge(got, n);
    const bool alone =
        std::all_of(books.begin(), books.end(), [&](auto* b) { return b->is_alone(asked); });
    if (!got && alone)
      judge_wait_for_tokens(of.rules, of.whole, name, of.here.now() - began, longest);
  }

  // Tokens taken ahead are tried first, and if they do not suffice, the bucket.
  holdfast::rate_decision try_take(std::uint64_t n) const {
    const auto ahead = of.whole.names[s.name].local;
    if (without_waiting() && ahead == 0) {
      return value_of(async_take(at, n, key, holdfast::wait_limit(duration(0))));
    }
    const cost one(*this, "try_take", ahead == 0 ? 1 : 2);
    return at.try_take(n, key);
  }

  void judge(const holdfast::rate_decision& d, std::uint64_t n) const {
    of.log.add(d ? "has them" : "is refused");
    if (d) return took(d, n, of.here.now());
    may_have_reserved();
    if (of.whole.seed >= several_seeds && what == rate_deed::try_take) judge_refusal(n);
    const bool full = std::all_of(books.begin(), books.end(),
                                  [&](const rate_book* b) { return b->would_give(n, asked); });
    if (!full || !of.whole.calm() || what == rate_deed::take_for) return;
    of.rules.violated("a full bucket refuses nothing",
                      name + " refused " + std::to_string(n) + " tokens");
  }

  // A wait reserves its tokens, and gives them back if it ends before they are due.
  void may_have_reserved() const {
    if (what != rate_deed::take_for) return;
    const nanos until = s.wait == never || s.looks ? never : asked + s.wait;
    for (auto* const b : books) b->may_have_reserved(until);
  }

  // If no other thread asks meanwhile, a bucket now has at most the tokens that it had at the
  // refusal, and those that came back since then.
  void judge_refusal(std::uint64_t n) const {
    const auto alone = [&] {
      return std::all_of(books.begin(), books.end(), [&](auto* b) { return b->is_alone(asked); });
    };
    if (!of.punctual() || !alone()) return;
    const auto now = at.peek(n, key);
    const nanos since = of.here.now() - asked;
    bool fits = alone();
    for (std::size_t i = 0; i < books.size(); ++i) {
      fits = fits && now.rules[i].remaining >= n + books[i]->comes_back_in(since);
    }
    if (!fits) return;
    of.rules.violated("a take is refused only where there are too few tokens",
                      name + " refused " + std::to_string(n) + ", and has " +
                          std::to_string(now.tightest().remaining));
  }

  // Each rule counts the tokens when its own bucket has them; the tokens pass when the slowest
  // bucket has them.
  void took(const holdfast::rate_decision& d, std::uint64_t asked_for, nanos through) const {
    const auto after = [&](std::size_t rule) {
      return std::chrono::nanoseconds(d.rules[rule].wait).count();
    };
    if (d.tokens != asked_for) {
      of.rules.violated(
          "a decision says how many tokens its caller got",
          name + ": " + std::to_string(d.tokens) + " instead of " + std::to_string(asked_for));
    }
    nanos slowest = 0;
    for (std::size_t i = 0; i < books.size(); ++i) slowest = std::max(slowest, after(i));
    if (what == rate_deed::take_for && of.whole.seed >= form_seeds)
      judge_take(of.rules, name, of.here.now() - asked, slowest);
    for (std::size_t i = 0; i < books.size(); ++i) {
      books[i]->has(d.tokens);
      books[i]->took(name, d.tokens, asked + after(i), through - slowest + after(i), after(i));
    }
  }
  std::vector<int> refunds(std::uint64_t n) const {
    std::vector<int> all;
    for (auto* const b : books) all.push_back(b->refund_begins(n, asked));
    return all;
  }
  void refunded(const std::vector<int>& which, nanos now) const {
    for (std::size_t i = 0; i < books.size(); ++i) books[i]->refund_ends(which[i], now);
  }

  // Gives back only tokens that it has. Tokens given back as they were taken have not passed.
  void refund(std::uint64_t n) const {
    const auto decision = try_take(n);
    if (decision && s.hold / microsecond % 4 != 0)
      return judge_refund(n, [&] { give_back(decision); });
    judge(decision, n);
    if (decision) judge_refund(n, [&] { give_back(n); });
  }

  // While no other thread asks, and nothing is reserved for later.
  template <class GiveBack>
  void judge_refund(std::uint64_t n, GiveBack give) const {
    const auto& whole = of.whole.names[s.name];
    const bool fixed = whole.local == 0 && !whole.grows && !whole.shrinks;
    if (of.whole.seed < following_seeds || !of.punctual() || !fixed) return give();
    const auto before = at.peek(n, key);
    give();
    const auto after = at.peek(n, key);
    for (std::size_t i = 0; i < books.size(); ++i) {
      if (!books[i]->is_alone(asked) || !books[i]->reserves_nothing(asked)) continue;
      judge_given_back(of.rules, name, before.rules[i].remaining, n, books[i]->burst(),
                       after.rules[i].remaining);
    }
  }

  void give_back(const holdfast::rate_decision& d) const {
    of.log.add("gives back what it took, " + std::to_string(d.tokens) + " tokens");
    const cost one(*this, "refund", 1);
    if (without_waiting()) {
      (void)value_of(async_refund(at, d, key));
    } else {
      at.refund(d, key);
    }
  }

  void give_back(std::uint64_t n) const {
    if (of.whole.seed >= troubled_seeds) of.here.sleep(s.hold);
    of.log.add("gives back " + std::to_string(n) + " tokens");
    const auto which = refunds(n);
    const cost one(*this, "refund", 1);
    if (without_waiting()) {
      (void)value_of(async_refund(at, n, key));
    } else {
      at.refund(n, key);
    }
    refunded(which, of.here.now());
    for (auto* const b : books) b->gave_back(n);
  }

  // Reserved tokens count when their time has come.
  void reserve(std::uint64_t n) const {
    const std::chrono::microseconds longest(s.wait / microsecond);
    of.log.add("reserves " + std::to_string(n) + " tokens");
    const auto decision = without_waiting() ? value_of(async_reserve(at, n, longest, key))
                                            : reserve_at_once(n, longest);
    of.log.add(decision ? "has them later" : "is refused");
    if (!decision) return;
    const nanos later = std::chrono::nanoseconds(decision.wait).count();
    for (auto* const b : books) b->may_have_reserved(of.here.now() + later);
    if (decision.wait > longest) {
      of.rules.violated("reserved tokens come when they are due", name);
    }
    if (of.whole.seed >= reserving_seeds)
      return keep_or_give_up(decision, n, of.here.now() + later);
    // A reservation that is given up at once never passes.
    if (s.back == step::end::destroy) return give_back(decision);
    took(decision, n, of.here.now() + later);
  }
  // Perhaps after others have reserved behind it.
  void keep_or_give_up(const holdfast::rate_decision& d, std::uint64_t n, nanos through) const {
    std::vector<int> which;
    for (std::size_t i = 0; i < books.size(); ++i) {
      which.push_back(books[i]->reserved(d.tokens, d.rules[i].due.count(), of.here.now()));
    }
    if (s.back != step::end::destroy) return took(d, n, through);
    of.here.sleep(s.hold);
    for (std::size_t i = 0; i < books.size(); ++i) books[i]->gives_up(which[i], of.here.now());
    if (of.whole.seed >= news_seeds && books.size() == 1 && of.punctual()) {
      give_back_alone(d, which[0]);
    } else {
      give_back(d);
    }
    for (std::size_t i = 0; i < books.size(); ++i) books[i]->gave_up(which[i], of.here.now());
  }
  // Judged if no other thread asks meanwhile, whatever rules are in force.
  void give_back_alone(const holdfast::rate_decision& d, int which) const {
    const nanos began = of.here.now();
    const auto left = [&] { return at.peek(1, key).tightest().remaining; };
    const auto before = left();
    give_back(d);
    const auto after = left();
    const nanos took = of.here.now() - began;
    const auto most = books[0]->comes_back_of(which) + books[0]->comes_back_in(took);
    if (!books[0]->is_alone(began) || after <= before + most) return;
    of.rules.violated(
        "a reservation that is given up brings back only the tokens that later ones leave",
        name + ": " + std::to_string(after - before) + " of " + std::to_string(d.tokens) + ", of " +
            std::to_string(most));
  }
  holdfast::rate_decision reserve_at_once(std::uint64_t n,
                                          std::chrono::microseconds longest) const {
    const cost one(*this, "reserve", 1);
    return at.reserve(n, longest, key);
  }

  // Changes the rules for its process. A process that knows only the old rules uses them where no
  // bucket shows the new ones.
  void change_rules() const {
    const auto& whole = of.whole.names[s.name];
    of.log.add(whole.grows ? "has more generous rules" : "has stricter rules");
    for (auto& [number, book] : of.notes.rates) {
      if (number % 100 == s.name) whole.grows ? book.grows() : book.shrinks();
    }
    try {
      at.change_rules(rules_of(whole, true), 1);
    } catch (const holdfast::error& e) {
      if (e.reason() != errc::invalid_argument) throw;  // its process has the new rules already
    }
  }
};

struct admission_actor : actor {
  holdfast::admission& at;
  holdfast::semaphore& permits;
  rate_book& book;

  holdfast::admitted ask(std::uint64_t n) const {
    if (without_waiting()) return value_of(async_admit(at, n, {}, limit(), stop()));
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
      const books_of_one all{&book};
      const asking now(all, of.here);
      try {
        in = ask(n);
      } catch (const holdfast::error& e) {
        if (!leaves_nothing(of.whole, e.reason())) book.in_doubt(n);
        throw;
      }
    }
    if (!in) {
      of.log.add("is refused");
      if (of.punctual()) judge_reason(of.rules, name, in);
      return;
    }
    book.has(n);
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

// Hardly any token comes back by itself.
bool counts_what_is_left(const plan& p, std::size_t which) {
  const auto& n = p.names[which];
  const bool by_itself = p.names.size() == 1 || (p.seed >= troubled_seeds && which == 1);
  return p.about == theme::rates && by_itself && n.per >= 1000 * second && n.keys == 0 &&
         n.local == 0 && !n.grows && !n.shrinks && all_arrives(p);
}

// One thread asks, and hardly any token comes back: nobody else changes the row.
bool one_thread_takes(const plan& p) {
  const auto& n = p.names.front();
  return p.seed >= beside_seeds && p.on_rows() && p.names.size() == 1 && n.per >= 1000 * second &&
         n.keys == 0 && n.local == 0 && !n.grows && !n.shrinks && !p.network.delivers_late &&
         p.faults.empty() && p.processes.size() == 1 && p.processes.front().threads.size() == 1;
}

bool only_reserves(const plan& p) {
  return p.seed >= reserving_seeds &&
         std::all_of(p.processes.begin(), p.processes.end(), [](const auto& one) {
           return std::all_of(one.threads.begin(), one.threads.end(), [](const auto& t) {
             return std::all_of(t.steps.begin(), t.steps.end(),
                                [](const step& s) { return s.deed == 4; });
           });
         });
}

}  // namespace

void judge_what_is_left_of_tokens(scene& of) {
  const std::size_t which = of.whole.names.back().kind == lock_kind::admission ? 1 : 0;
  const bool alone = which == 0 && one_thread_takes(of.whole);
  if (!alone && !counts_what_is_left(of.whole, which)) return;
  const auto& book = of.notes.rates.at(which);
  if (!alone && !book.sure()) return;
  process& p = of.here.add_process();
  of.here.start(p, "auditor", [&of, &p, &book, which, alone] {
    const holdfast::session s(of.stores.front()->connect(p), {});
    const auto limiter = make_limiter(s, scene::name_of(which), of.whole.names[which]);
    const auto now = limiter->peek(1);
    if (alone) return book.judge_twice(scene::name_of(which), now.tightest().remaining);
    book.judge_rest(scene::name_of(which), now.tightest().remaining);
    if (which > 0 || !only_reserves(of.whole)) return;
    book.judge_given_up(scene::name_of(0), tokens_left(now.tightest(), of.whole.names.front()));
  });
  const nanos end = of.here.now() + 10 * second;
  (void)of.here.run(end);
}

name_plan rule_of_a_key(const name_plan& all) {
  name_plan one = all;
  one.capacity = std::max<std::uint32_t>(1, all.capacity / 2);
  one.burst = std::max<std::uint32_t>(all.local, all.burst * 2 / 3);
  return one;
}

std::unique_ptr<holdfast::rate_limiter> make_limiter(const holdfast::session& s, std::string name,
                                                     const name_plan& of) {
  holdfast::rate_limiter_options o;
  o.local_tokens = of.local;
  return std::make_unique<holdfast::rate_limiter>(s, std::move(name), rules_of(of, false), o);
}

const char* word_of_rates(const plan& p, const step& s) {
  static constexpr const char* words[] = {" refund",   " peek",    " try_take",
                                          " take_for", " reserve", " change_rules"};
  return words[static_cast<int>(deed_of(p, s))];
}

void act_by_rates(const actor& who, belongings& all) {
  const std::size_t i = who.s.name;
  const auto& mine = all.of_meetings[i];
  const auto& whole = who.of.whole;
  auto& rates = who.of.notes.rates;
  if (!mine.limiter) {
    return admission_actor{{who}, *mine.admission, *all.of_locks[i - 2].semaphore, rates.at(i - 1)}
        .act();
  }
  limiter_actor a{{who}, *mine.limiter, *mine.session, {&rates.at(i)}, {}, deed_of(whole, who.s)};
  if (const auto count = whole.names[i].keys; count > 0) {
    const auto which = static_cast<std::size_t>(who.s.hold) % count;
    a.books.push_back(&rates.at(books::number_of(i, which)));
    a.key = {{"client", keys[which]}};
  }
  a.act();
}

}  // namespace simulation
