#include "simulation/nested_actor.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "simulation/encounters.hpp"

namespace simulation {

namespace {

using holdfast::errc;

struct nested_actor : actor {
  std::vector<locks>& all;
  ring_book& rings;
  std::vector<std::size_t> order{};

  // The names in the order in which they are acquired. Some plans have one order for all, so that
  // there is no ring.
  void act() {
    const auto count = std::min<std::size_t>(s.weight, all.size());
    for (std::size_t i = 0; i < count; ++i) {
      order.push_back((s.name + i * (1 + s.deed % 2)) % all.size());
    }
    if (s.deed >= 4) std::reverse(order.begin(), order.end());
    if (s.deed == 0) std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    take(0);
  }

  bool again(std::size_t depth) const {
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(depth);
    return std::find(order.begin(), end, order[depth]) != end;
  }

  void take(std::size_t depth) {
    if (depth == order.size() || again(depth)) return;
    auto& mine = all[order[depth]];
    name = scene::name_of(order[depth]);
    if (mine.mutex) return take(*mine.mutex, depth);
    if (mine.recursive) return take(*mine.recursive, depth);
    take(*mine.shared, depth);
  }

  template <class Lock>
  static constexpr bool can_share = std::is_same_v<Lock, holdfast::shared_mutex>;

  // Some threads only read the first of their locks.
  template <class Lock>
  bool shares(std::size_t depth) const {
    const bool writes_inside = of.whole.seed >= following_seeds && s.form == 7 && depth > 0;
    return can_share<Lock> && s.shared && !writes_inside;
  }

  template <class Lock>
  bool lock(Lock& l, std::size_t depth) const {
    if constexpr (can_share<Lock>) {
      const bool reads = shares<Lock>(depth);
      if (reads && s.wait == 0) return l.try_lock_shared();
      if (reads && s.wait == never) return l.lock_shared(), true;
      if (reads) return l.try_lock_shared_for(duration(s.wait));
    }
    if (s.wait == 0) return l.try_lock();
    if (s.wait == never && s.stop_after != never) return l.lock(stop());
    if (s.wait == never) return l.lock(), true;
    return l.try_lock_for(duration(s.wait));
  }

  template <class Lock>
  void unlock(Lock& l, std::size_t depth) const {
    if constexpr (can_share<Lock>) {
      if (shares<Lock>(depth)) return l.unlock_shared();
    }
    l.unlock();
  }

  template <class Lock>
  void take(Lock& l, std::size_t depth) {
    asked = of.here.now();
    of.log.add("asks for " + name + (shares<Lock>(depth) ? " shared" : ""));
    waits(true);
    if (can_share<Lock> && s.shared && !shares<Lock>(depth)) {
      of.together.writes(&p, asked);
      of.line.back().shares = false;
    }
    rings.waits(p, name, shares<Lock>(depth), s.wait != never);
    bool got = false;
    try {
      got = lock(l, depth);
    } catch (const holdfast::error& e) {
      waits(false);
      if (e.reason() == errc::deadlock) {
        is_told();
      } else {
        judge_error(e.reason(), e.what());
      }
      return rings.waits_no_longer();
    }
    const bool early = !got && s.wait != never && of.here.now() - asked < s.wait;
    if (early) {
      waits(false);
      is_told();
    }
    rings.waits_no_longer();
    if (early) return;
    judge_wait(got, false);
    if (got) hold(l, depth);
  }

  void is_told() const {
    of.log.add("is told of a deadlock at " + name);
    rings.told(of.whole.calm());
  }

  template <class Lock>
  void hold(Lock& l, std::size_t depth) {
    const std::string mine = name;
    rings.has(p, mine, shares<Lock>(depth), l.lost());
    constexpr std::uint32_t readers = 1U << 30;
    const std::uint32_t most = can_share<Lock> ? readers : 1;
    int id = 0;
    const auto check = [&] {
      const nanos then = of.here.now();
      l.check();
      of.rules.still_held(id, then);
    };
    try {
      const nanos then = of.here.now();
      l.check();
      const std::uint32_t weight = shares<Lock>(depth) ? 1 : most;
      id = of.rules.granted({&p, mine, weight, most, l.fence(), asked, l.lost()}, then);
      of.here.sleep(s.hold / static_cast<nanos>(order.size()));
      check();
      take(depth + 1);
      check();
    } catch (const holdfast::error& e) {
      judge_error(e.reason(), e.what());
    }
    of.rules.given_up(id);
    rings.lets_go(mine);
    of.log.add("unlocks " + mine);
    unlock(l, depth);
  }
};

}  // namespace

void act_nested(const actor& who, std::vector<locks>& all) {
  nested_actor{{who}, all, *who.of.notes.rings}.act();
}

}  // namespace simulation
