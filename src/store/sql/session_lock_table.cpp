#include "store/sql/session_lock_table.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "base/readiness.hpp"

namespace holdfast::store::sql {

namespace {

/// How often, and at which interval, a wait is interrupted.
constexpr int most_interrupts = 100;
constexpr std::chrono::milliseconds interrupt_again{5};

}  // namespace

result<lock_link*> session_lock_table::home() {
  if (links_.home().usable()) return &links_.home();
  forget_what_broke();
  if (auto ok = links_.replace_home(); !ok) return std::move(ok.error());
  return &links_.home();
}

// The server has released what a broken connection held.
void session_lock_table::forget_what_broke() {
  const bool home_works = links_.home().usable();
  std::erase_if(all_, [&](const session_lock_entry& s) {
    return s.own ? !s.own->usable() : s.held && !home_works;
  });
  links_.forget_what_broke();
}

std::unique_ptr<lock_link> session_lock_table::take_spare() {
  const auto taken = std::count_if(all_.begin(), all_.end(),
                                   [](const session_lock_entry& s) { return s.own != nullptr; });
  return links_.take_spare(static_cast<std::size_t>(taken));
}

// The server would grant a lock again to a connection that holds it, even if others wait. So a
// second request in this session goes over another connection, and is queued behind the waiters.
bool session_lock_table::home_is_free_for(const session_lock_entry& wants) const {
  return std::none_of(all_.begin(), all_.end(), [&](const session_lock_entry& s) {
    return s.held && !s.own && s.name == wants.name && s.owner != wants.owner;
  });
}

// ---- taking

// A failed attempt may have acquired the lock all the same, so it is unlocked.
result<bool> session_lock_table::try_now(session_lock_entry& s) {
  if (auto ok = home(); !ok) return std::move(ok.error());
  if (!home_is_free_for(s)) s.own = take_spare();
  if (!home_is_free_for(s) && !s.own) return false;
  const auto attempt = [&](lock_link& over) {
    s.heard = clock_.now();
    return over.try_lock(s.name, s.mode());
  };
  const auto at = s.own ? attempt(*s.own) : over_home(attempt);
  if (at && *at) {
    s.held = true;
    s.fence = static_cast<std::uint64_t>(**at);
    return true;
  }
  if (!at) (void)unlock(s);
  links_.give_back(std::move(s.own));
  if (!at) return at.error();
  return false;
}

void session_lock_table::begin_wait(session_lock_entry& s) {
  s.own = take_spare();
  s.heard = clock_.now();
  if (s.own && !s.own->begin(s.name, s.mode())) s.own.reset();
}

// A wait without an answer proves nothing about the server: a grant may be on its way for as long
// as the wait lasts. So the last sign of life is the beginning of the wait.
void session_lock_table::hear_of(session_lock_entry& s) {
  if (!s.own->over()) return;
  const auto at = s.own->end();
  if (at && *at) {
    s.held = true;
    s.fence = static_cast<std::uint64_t>(**at);
    return;
  }
  s.own.reset();  // closes the connection, which may have acquired the lock all the same
}

// An error from the server is an answer, too.
void session_lock_table::ask_after(session_lock_entry& s) {
  const auto now = clock_.now();
  lock_link& over = link_of(s);
  (void)over.ping();
  if (over.usable()) s.heard = now;
}

// A change of mode that failed on its way is in an unknown state, so the connection is closed.
result<bool> session_lock_table::change(session_lock_entry& s, std::uint32_t weight) {
  session_lock_entry wanted;
  wanted.capacity = s.capacity;
  wanted.weight = weight;
  if (wanted.mode() != s.mode()) {
    const bool alone = wanted.mode() == lock_mode::exclusive;
    if (alone && !s.own && !home_is_free_for(s)) return false;
    s.heard = clock_.now();
    const auto at = link_of(s).change(s.name, wanted.mode());
    if (!at) link_of(s).drop();
    if (!at) return at.error();
    if (!*at) return false;
    if (alone) s.fence = static_cast<std::uint64_t>(**at);
  }
  s.weight = weight;
  return true;
}

// ---- giving up

// A connection does not notice an interrupt that comes before its wait has begun, so the interrupt
// is repeated. A connection that does not answer is dropped: all other threads of the session wait
// for this one.
void session_lock_table::end_wait(lock_link& of) {
  for (int i = 0; i < most_interrupts && of.usable() && !of.over(); ++i) {
    if (!interrupt(of) || !of.usable()) break;
    (void)base::wait_until_ready(of.fd(), POLLIN, boot_clock::now() + interrupt_again);
  }
  if (!of.usable()) return;
  if (!of.over()) return of.drop();
  (void)of.end();
}

// A connection's number from an earlier life of the server belongs to a stranger now. Some servers
// do not report in which life they are.
status session_lock_table::interrupt(lock_link& one) {
  return over_home([&](lock_link& home) -> status {
    const auto& life = home.life_of_server();
    if (!life.empty() && life == one.life_of_server()) return home.interrupt(one);
    one.drop();
    return done{};
  });
}

// An interrupt of a wait may come late, and end the unlock instead: so the unlock is tried twice.
// Without memory for the failure, dropping the connection releases the lock.
result<bool> session_lock_table::unlock(const session_lock_entry& s) {
  lock_link& on = link_of(s);
  if (!on.usable()) {
    on.drop();
    return failure{errc::unavailable, "the connection to the server is broken"};
  }
  try {
    auto was = on.unlock(s.name, s.mode());
    if (!was && on.usable()) was = on.unlock(s.name, s.mode());
    if (!was) on.drop();
    return was;
  } catch (...) {
    on.drop();
    throw;
  }
}

// An interrupted wait may have acquired the lock at that moment, even if the server reports the
// interruption.
result<bool> session_lock_table::give_up(session_lock_entry& s) {
  session_lock_entry gone = std::move(s);
  std::erase_if(all_, [&](const session_lock_entry& one) { return &one == &s; });
  if (!gone.held && !gone.own) return true;
  const bool waited = !gone.held;
  if (waited) end_wait(*gone.own);
  auto was = unlock(gone);
  links_.give_back(std::move(gone.own));
  return waited ? result<bool>(true) : was;
}

}  // namespace holdfast::store::sql
