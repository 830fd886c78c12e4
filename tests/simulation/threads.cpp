// The system calls of a simulated thread. This program's own definitions come before those of the C
// library, also for the C++ library; outside the simulation they pass the call on.

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "simulation/next_function.hpp"
#include "simulation/world.hpp"

using simulation::fiber;
using simulation::nanos;
using simulation::never;
using simulation::process;
using simulation::world;

namespace {

/// Waiting fibers, in order of arrival.
struct line {
  fiber* first;
  fiber* last;

  void enter(fiber& f) {
    f.next_waiting = nullptr;
    (first == nullptr ? first : last->next_waiting) = &f;
    last = &f;
  }
  fiber* take() {
    fiber* const f = first;
    if (f != nullptr) first = f->next_waiting;
    return f;
  }
  void remove(fiber& f) {
    fiber* before = nullptr;
    for (fiber* at = first; at != nullptr; before = at, at = at->next_waiting) {
      if (at != &f) continue;
      (before == nullptr ? first : before->next_waiting) = at->next_waiting;
      if (last == at) last = before;
      return;
    }
  }
};

/// Stored in the space of a pthread_mutex_t. A free one equals PTHREAD_MUTEX_INITIALIZER, whose
/// fifth word is the kind and never changes.
struct simulated_mutex {
  fiber* owner;
  fiber* first;
  std::uint64_t kind;
  fiber* last;
};
static_assert(sizeof(simulated_mutex) <= sizeof(pthread_mutex_t));

struct simulated_condition {
  line waiting;
};
static_assert(sizeof(simulated_condition) <= sizeof(pthread_cond_t));

simulated_mutex& of(pthread_mutex_t* m) { return *reinterpret_cast<simulated_mutex*>(m); }
simulated_condition& of(pthread_cond_t* c) { return *reinterpret_cast<simulated_condition*>(c); }

void enter(simulated_mutex& m, fiber& f) {
  line l{m.first, m.last};
  l.enter(f);
  m.first = l.first;
  m.last = l.last;
}

fiber* take(simulated_mutex& m) {
  line l{m.first, m.last};
  fiber* const f = l.take();
  m.first = l.first;
  if (m.first == nullptr) m.last = nullptr;
  return f;
}

fiber* const nobody_in_particular = reinterpret_cast<fiber*>(1);

void lock(simulated_mutex& m, world& w) {
  fiber* const me = world::self();
  if (me == nullptr) {  // in an event, which cannot wait
    if (m.owner != nullptr) {
      std::fputs("simulation: an event waits for a mutex\n", stderr);
      std::abort();
    }
    m.owner = nobody_in_particular;
    return;
  }
  w.preempt_sometimes();
  while (m.owner != nullptr) {
    if (m.owner == me) {
      std::fputs("simulation: a thread locks its own mutex\n", stderr);
      std::abort();
    }
    enter(m, *me);
    (void)w.block(never, &m);
  }
  m.owner = me;
}

void unlock(simulated_mutex& m, world& w) {
  m.owner = nullptr;
  if (fiber* const next = take(m)) w.wake(*next);
}

int wait(simulated_condition& c, simulated_mutex& m, nanos until, world& w) {
  fiber& me = *world::self();
  if (w.wakes_without_reason()) until = std::min(until, w.now() + 1000);
  c.waiting.enter(me);
  unlock(m, w);
  me.sleeps = true;
  const bool woken = w.block(until, &c);
  me.sleeps = false;
  if (!woken) c.waiting.remove(me);
  lock(m, w);
  return woken ? 0 : ETIMEDOUT;
}

// The steady clock stops while the machine is suspended.
nanos shown_at_the_beginning(const simulation::process& p, clockid_t on) {
  if (on == CLOCK_REALTIME) return 1'700'000'000 * simulation::second;
  return on == CLOCK_MONOTONIC ? p.boot - p.slept : p.boot;
}

// Converts a time of that process's clock to the true time.
nanos true_time(const timespec& t, clockid_t on) {
  const nanos shown = t.tv_sec * simulation::second + t.tv_nsec;
  return shown - shown_at_the_beginning(*world::self()->of, on);
}

using futexes = std::map<const void*, line>;
futexes& all_futexes() {
  static futexes all;
  return all;
}

void* run_thread(void* (*work)(void*), void* argument) { return work(argument); }

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* m) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_mutex_lock)(m);
  lock(of(m), *w);
  return 0;
}

int pthread_mutex_trylock(pthread_mutex_t* m) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_mutex_trylock)(m);
  if (of(m).owner != nullptr) return EBUSY;
  of(m).owner = world::self() == nullptr ? nobody_in_particular : world::self();
  return 0;
}

int pthread_mutex_unlock(pthread_mutex_t* m) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_mutex_unlock)(m);
  unlock(of(m), *w);
  w->preempt_sometimes();
  return 0;
}

int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_cond_wait)(c, m);
  return wait(of(c), of(m), never, *w);
}

int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t on,
                           const timespec* until) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_cond_clockwait)(c, m, on, until);
  return wait(of(c), of(m), true_time(*until, on), *w);
}

int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* until) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_cond_timedwait)(c, m, until);
  return wait(of(c), of(m), true_time(*until, CLOCK_REALTIME), *w);
}

int pthread_cond_signal(pthread_cond_t* c) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_cond_signal)(c);
  if (fiber* const f = of(c).waiting.take()) w->wake(*f);
  w->preempt_sometimes();
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* c) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_cond_broadcast)(c);
  while (fiber* const f = of(c).waiting.take()) w->wake(*f);
  w->preempt_sometimes();
  return 0;
}

int pthread_cond_destroy(pthread_cond_t* c) {
  if (world::running() == nullptr) return HOLDFAST_REAL(pthread_cond_destroy)(c);
  return 0;
}

int pthread_create(pthread_t* id, const pthread_attr_t* how, void* (*work)(void*), void* argument) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_create)(id, how, work, argument);
  fiber& me = *world::self();
  fiber& f = w->start(*me.of, "", [=] { (void)run_thread(work, argument); });
  *id = reinterpret_cast<pthread_t>(&f);
  w->preempt_sometimes();
  return 0;
}

int pthread_join(pthread_t id, void** result) {
  world* const w = world::running();
  if (w == nullptr) return HOLDFAST_REAL(pthread_join)(id, result);
  auto& f = *reinterpret_cast<fiber*>(id);
  while (f.now != fiber::state::over) {
    f.joiner = world::self();
    (void)w->block(never, &f);
  }
  return 0;
}

int pthread_detach(pthread_t id) {
  if (world::running() == nullptr) return HOLDFAST_REAL(pthread_detach)(id);
  reinterpret_cast<fiber*>(id)->outlives_session = true;
  return 0;
}

pthread_t pthread_self() noexcept {
  if (fiber* const me = world::self()) return reinterpret_cast<pthread_t>(me);
  static auto* const known = reinterpret_cast<pthread_t (*)()>(dlsym(RTLD_NEXT, "pthread_self"));
  return known();
}

int sched_yield() noexcept {
  if (world::self() == nullptr) return HOLDFAST_REAL(sched_yield)();
  world::running()->yield();
  return 0;
}

int clock_gettime(clockid_t which, timespec* t) noexcept {
  fiber* const me = world::self();
  if (me == nullptr) return HOLDFAST_REAL(clock_gettime)(which, t);
  world& w = *world::running();
  w.tick();
  const nanos base = shown_at_the_beginning(*me->of, which);
  t->tv_sec = (base + w.now()) / simulation::second;
  t->tv_nsec = (base + w.now()) % simulation::second;
  return 0;
}

int nanosleep(const timespec* length, timespec* left) {
  if (world::self() == nullptr) return HOLDFAST_REAL(nanosleep)(length, left);
  world::running()->sleep(length->tv_sec * simulation::second + length->tv_nsec);
  return 0;
}

int clock_nanosleep(clockid_t on, int flags, const timespec* t, timespec* left) {
  if (world::self() == nullptr) return HOLDFAST_REAL(clock_nanosleep)(on, flags, t, left);
  world& w = *world::running();
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  w.sleep(absolute ? true_time(*t, on) - w.now() : t->tv_sec * simulation::second + t->tv_nsec);
  return 0;
}

ssize_t getrandom(void* to, std::size_t size, unsigned flags) {
  if (world::self() == nullptr) return HOLDFAST_REAL(getrandom)(to, size, flags);
  auto* at = static_cast<unsigned char*>(to);
  for (std::size_t i = 0; i < size; ++i) {
    at[i] = static_cast<unsigned char>(world::running()->random().next());
  }
  return static_cast<ssize_t>(size);
}

pid_t getpid() noexcept {
  if (fiber* const me = world::self()) return 1000 + me->of->number;
  return HOLDFAST_REAL(getpid)();
}

// The C++ library uses this call to wait for atomics, stop callbacks and static objects.
long syscall(long number, ...) noexcept {
  va_list all;
  va_start(all, number);
  long a[6];
  for (long& one : a) one = va_arg(all, long);
  va_end(all);
  world* const w = world::running();
  if (number != SYS_futex || w == nullptr || world::self() == nullptr) {
    static auto* const known = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
    return known(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  }
  auto* const where = reinterpret_cast<int*>(a[0]);
  const int what = static_cast<int>(a[1]) & FUTEX_CMD_MASK;
  if (what == FUTEX_WAKE) {
    const auto found = all_futexes().find(where);
    long woken = 0;
    while (found != all_futexes().end() && woken < static_cast<int>(a[2])) {
      fiber* const f = found->second.take();
      if (f == nullptr) break;
      w->wake(*f);
      ++woken;
    }
    return woken;
  }
  if (*where != static_cast<int>(a[2])) {
    errno = EAGAIN;
    return -1;
  }
  nanos until = never;
  if (const auto* const t = reinterpret_cast<const timespec*>(a[3])) {
    const bool real_time = (static_cast<int>(a[1]) & FUTEX_CLOCK_REALTIME) != 0;
    until = what == FUTEX_WAIT_BITSET ? true_time(*t, real_time ? CLOCK_REALTIME : CLOCK_MONOTONIC)
                                      : w->now() + t->tv_sec * simulation::second + t->tv_nsec;
  }
  line& waiting = all_futexes()[where];
  waiting.enter(*world::self());
  if (w->block(until, where)) return 0;
  all_futexes()[where].remove(*world::self());
  errno = ETIMEDOUT;
  return -1;
}

int __cxa_thread_atexit_impl(void (*)(void*), void*, void*);

int __cxa_thread_atexit(void (*call)(void*), void* object, void* library) {
  if (fiber* const me = world::self()) {
    me->at_thread_exit.emplace_back(call, object);
    return 0;
  }
  return __cxa_thread_atexit_impl(call, object, library);
}

}  // extern "C"
