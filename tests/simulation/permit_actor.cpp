#include "simulation/permit_actor.hpp"

#include <algorithm>
#include <optional>

namespace simulation {

namespace {

enum class permit_deed { acquire, extend, release, available, extend_old, release_old, force };

permit_deed deed_of(const step& s) noexcept {
  using deed = permit_deed;
  static constexpr deed all[] = {deed::acquire, deed::acquire,   deed::acquire,    deed::extend,
                                 deed::release, deed::available, deed::extend_old, deed::force};
  const auto what = all[s.deed];
  return what == deed::extend_old && s.weight == 2 ? deed::release_old : what;
}

struct permit_actor : actor {
  holdfast::expiring_semaphore& at;
  const holdfast::session& session;
  permit_book& book;

  void act() {
    const auto what = deed_of(s);
    if (what == permit_deed::acquire) return acquire();
    if (what == permit_deed::available) return look();
    const bool old = what == permit_deed::extend_old || what == permit_deed::release_old;
    auto* const one = book.one_of_those(old, of.here.random().next(), of.here.now());
    if (one == nullptr) return of.log.add("knows no permit");
    if (what == permit_deed::force) return force(*one);
    if (what == permit_deed::extend || what == permit_deed::extend_old) return extend(*one);
    give_back(*one);
  }

  // Sometimes shorter than the lease was.
  std::chrono::milliseconds lasts() const {
    return in_ms(s.weight == 3 ? does.lease / 2 : does.lease);
  }

  std::optional<holdfast::permit> take() const {
    if (without_waiting()) return in_time(async_acquire(at, lasts(), limit(), stop()));
    if (s.wait == never) return at.acquire(lasts(), stop());
    if (s.wait != 0) return at.try_acquire_for(lasts(), duration(s.wait), stop());
    const cost one(*this, "try_acquire", 1);
    return at.try_acquire(lasts());
  }

  void acquire() {
    of.log.add("asks for a permit of " + name);
    const auto before = book.at_most(of.here.now());
    book.asks();
    const auto asked_before = book.asked();
    waits(true);
    std::optional<holdfast::permit> got;
    try {
      got = take();
    } catch (...) {
      book.asks_no_longer(of.here.now() + of.whole.longest_lease());
      judge_wait(true, true);
      throw;
    }
    judge_wait(got.has_value(), true);
    if (!got) {
      // A caller that gives up may still get a permit at that moment; the library gives it back.
      book.asks_no_longer(of.here.now() + 3 * second);
      const bool alone = of.whole.names.size() == 1;
      if (s.wait == 0 && alone && of.whole.calm() && book.had_room(before, asked_before)) {
        of.rules.violated("a free permit is granted", name);
      }
      return;
    }
    keep(*got);
  }

  void keep(const holdfast::permit& got) {
    holdfast::store::owner_id id;
    if (!parse_owner_id(got.id, id)) of.rules.violated("a permit has an id", got.id);
    judge::grant g{&p, name, 1, at.capacity(), got.fence, asked, {}};
    g.outlives_process = true;
    const nanos given = std::max(asked, of.stores.front()->given_at(id));
    auto& mine = book.got(std::move(g), got.id, given, std::chrono::nanoseconds(got.lease).count(),
                          of.here.now());
    of.log.add("has the permit " + got.id.substr(0, 4));
    of.here.sleep(s.hold);
    book.goes_on(of.here.now());
    if (s.back == step::end::release) give_back(mine);
  }

  // A database's driver may send a request twice, and a late request may revive a permit that had
  // ended.
  permit_book::excuses none(const permit_book::call& by) const {
    const bool well = of.undisturbed(p, by.asked);
    return {well || of.whole.store < store_kind::postgres, well};
  }

  void extend(permit_book::permit& one) {
    asked = of.here.now();
    of.log.add("extends the permit " + one.id.substr(0, 4));
    const auto lease = std::chrono::nanoseconds(lasts()).count();
    const auto call = book.begins_to_extend(one, lease, asked);
    bool so = false;
    try {
      const cost just(*this, "try_extend", 1);
      so = without_waiting() ? value_of(async_extend(at, one.id, lasts()))
                             : at.try_extend(one.id, lasts());
    } catch (...) {
      permit_book::in_doubt(call, of.here.now());
      throw;
    }
    of.log.add(so ? "has extended it" : "finds that it has ended");
    book.extended(call, so, lease, of.here.now(), none(call));
  }

  void give_back(permit_book::permit& one) {
    asked = of.here.now();
    of.log.add("gives back the permit " + one.id.substr(0, 4));
    const auto call = book.begins_to_give_back(one, asked);
    bool so = false;
    try {
      const cost just(*this, "release", 1);
      so = without_waiting() ? value_of(async_release(at, one.id)) : at.release(one.id);
    } catch (...) {
      permit_book::in_doubt(call, of.here.now());
      throw;
    }
    of.log.add(so ? "has given it back" : "finds that it has ended");
    book.given_back(call, so, of.here.now(), none(call));
  }

  // As an operator does, with a part of the id.
  void force(permit_book::permit& one) {
    asked = of.here.now();
    of.log.add("takes the permit " + one.id.substr(0, 4) + " away");
    const auto call = book.begins_to_give_back(one, asked);
    std::size_t how_many = 0;
    try {
      how_many = session.force_release(name, one.id.substr(0, 8));
    } catch (...) {
      permit_book::in_doubt(call, of.here.now());
      throw;
    }
    if (how_many > 1) {
      of.rules.violated("an operator takes away only the permit whose id the call names", name);
    }
    book.given_back(call, how_many > 0, of.here.now(), none(call));
  }

  void look() {
    const cost just(*this, "available", 1);
    const auto n = without_waiting() ? value_of(async_available(at)) : at.available();
    of.log.add("sees " + std::to_string(n) + " that are free");
    book.seen_free(n, asked, of.here.now());
  }
};

}  // namespace

const char* word_of_permits(const step& s) noexcept {
  static constexpr const char* words[] = {" acquire",
                                          " try_extend",
                                          " release",
                                          " available",
                                          " try_extend of an old one",
                                          " release of an old one",
                                          " force_release"};
  return words[static_cast<int>(deed_of(s))];
}

void act_by_permits(const actor& who, belongings& all) {
  auto& mine = all.of_meetings[who.s.name];
  auto& book = who.of.notes.permits.at(who.s.name);
  permit_actor a{{who}, *mine.expiring, *mine.session, book};
  a.name = book.name();
  a.act();
}

}  // namespace simulation
