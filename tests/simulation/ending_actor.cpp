#include "simulation/ending_actor.hpp"

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace simulation {

namespace {

using holdfast::errc;
using holdfast::lease;
using holdfast::result;

/// A coroutine that nobody waits for.
struct outlives_session {
  struct promise_type {
    outlives_session get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// The meanings of a deed's number.
enum class then { drop, release_later, ask_again, keep_the_lock, extend, keep, co_await_it };

then then_of(unsigned deed) { return static_cast<then>(deed % 7); }

/// One asynchronous request, and what happens when it completes.
struct answer : actor {
  std::shared_ptr<begun> all;
  std::shared_ptr<locks> kept_lock;
  int times_left = 2;
  decltype(process::met) met_before = p.met;

  holdfast::pending<lease> asked_of(locks& at) const {
    holdfast::wait_limit limit;
    if (s.wait != never) limit = holdfast::wait_limit(duration(s.wait));
    if (at.mutex) return async_acquire(*at.mutex, limit, stop());
    if (at.semaphore) return async_acquire(*at.semaphore, s.weight, limit, stop());
    if (s.shared) return async_acquire_shared(*at.shared, limit, stop());
    return async_acquire(*at.shared, limit, stop());
  }

  void begin(locks& at) {
    of.log.add("asks for " + name + " without waiting");
    ++all->asked;
    if (then_of(s.deed) == then::co_await_it) {
      (void)go(*this, asked_of(at));
      return;
    }
    asked_of(at).start([me = *this](result<lease> how) mutable { me.told(std::move(how)); });
  }

  bool judge_end(const result<lease>& how) const {
    ++all->told;
    of.note(p, does, s, met_before);
    of.log.add(how ? "is told that it has " + name : "is told: " + how.error().what);
    if (how) return true;
    const errc code = how.error().code;
    const bool due = code == errc::cancelled || (code == errc::timed_out && s.wait != never) ||
                     (code == errc::busy && s.wait == 0);
    if (!due) judge_error(code, how.error().what);
    return false;
  }

  // Checks the lease at the moment when it arrives.
  void holds(const lease& held) const {
    const nanos then = of.here.now();
    if (held.state() != holdfast::lease_state::held) return;
    const bool whole = of.whole.names[s.name].kind != lock_kind::semaphore && !s.shared;
    const bool readers = of.whole.names[s.name].kind == lock_kind::shared;
    const std::uint32_t most = readers ? 1U << 30 : of.whole.names[s.name].capacity;
    const int id = of.rules.granted(
        {&p, name, whole ? most : s.weight, most, held.fence(), asked, held.lost()}, then);
    of.rules.given_up(id);
  }

  void told(result<lease> how) {
    if (!judge_end(how)) return;
    holds(*how);
    switch (then_of(s.deed)) {
      case then::release_later:
        return async_release(std::move(*how)).start([](const auto&) {});
      case then::ask_again: {
        const lease held = std::move(*how);
        if (--times_left > 0) begin(*kept_lock);
        return;
      }
      case then::extend:
        async_extend(*how).start([](const auto&) {});
        return;
      case then::keep: {
        const std::lock_guard guard{all->mutex};
        if (!all->closing) all->kept.push_back(std::move(*how));
        return;
      }
      default:
        return;
    }
  }

  static outlives_session go(answer me, holdfast::pending<lease> asked) {
    auto how = co_await std::move(asked);
    if (!me.judge_end(how)) co_return;
    me.holds(*how);
    (void)co_await async_extend(*how);
    (void)co_await async_release(std::move(*how));
  }
};

}  // namespace

void act_without_waiting(const actor& who, const holdfast::session& s,
                         const std::shared_ptr<begun>& all) {
  auto at = std::make_shared<locks>(make_locks(who.of, s, who.s.name, who.does));
  const auto what = then_of(who.s.deed);
  const bool keeps = what == then::ask_again || what == then::keep_the_lock;
  answer a{{who}, all, keeps ? at : nullptr};
  a.asked = who.of.here.now();
  a.begin(*at);
}

void judge_endings(scene& of, const process& p, const begun& all) {
  if (all.told == all.asked) return;
  of.rules.violated("every callback and coroutine gets its result",
                    "P" + std::to_string(p.number) + " told " + std::to_string(all.told) + " of " +
                        std::to_string(all.asked));
}

}  // namespace simulation
