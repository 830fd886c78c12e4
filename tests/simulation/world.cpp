#include "simulation/world.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <ucontext.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simulation {

namespace {

constexpr std::size_t stack_size = std::size_t{256} * 1024;
constexpr std::size_t guard_size = 4096;

world* the_world = nullptr;

/// This program's thread_local variables, of which each fiber has its own copy. (Those of shared
/// libraries stay common; of these, the exceptions in flight and errno matter.)
struct local_variables {
  std::byte* where = nullptr;
  std::size_t size = 0;
  const std::byte* first_values = nullptr;
  std::size_t first_values_size = 0;
};

const local_variables& locals() {
  static const local_variables found = [] {
    local_variables l;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
          auto& out = *static_cast<local_variables*>(to);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& header = info->dlpi_phdr[i];
            if (header.p_type != PT_TLS) continue;
            out.where = static_cast<std::byte*>(info->dlpi_tls_data);
            out.size = header.p_memsz;
            out.first_values = reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr);
            out.first_values_size = header.p_filesz;
          }
          return 1;  // the program itself comes first
        },
        &l);
    return l;
  }();
  return found;
}

}  // namespace

world* world::running() noexcept { return the_world; }
fiber* world::self() noexcept { return the_world == nullptr ? nullptr : the_world->self_; }

world::world(std::uint64_t seed, const machine_traits& machine)
    : random_(seed), machine_(machine), main_locals_(locals().size) {
  __libc_single_threaded = 0;  // otherwise the C++ library wakes nobody up
}

world::~world() {
  for (const auto& f : fibers_) {
    if (f->stack != nullptr) munmap(f->stack, f->stack_bytes);
  }
}

process& world::add_process() {
  auto& p = *processes_.emplace_back(std::make_unique<process>());
  p.number = static_cast<int>(processes_.size());
  p.boot = p.number * 1000 * second;
  return p;
}

fiber& world::start(process& of, std::string name, std::function<void()> work) {
  fiber* f = nullptr;
  if (free_fibers_.empty()) {
    f = fibers_.emplace_back(std::make_unique<fiber>()).get();
    f->stack_bytes = stack_size + guard_size;
    void* const room = mmap(nullptr, f->stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) std::abort();
    (void)mprotect(room, guard_size, PROT_NONE);
    f->stack = static_cast<std::byte*>(room);
  } else {
    f = free_fibers_.back();
    free_fibers_.pop_back();
  }
  const auto& all = locals();
  f->thread_locals.assign(all.size, std::byte{});
  std::copy_n(all.first_values, all.first_values_size, f->thread_locals.begin());
  f->of = &of;
  f->name = std::move(name);
  f->work = std::move(work);
  f->begun = f->outlives_session = f->timed_out = f->sleeps = false;
  f->joiner = f->next_waiting = nullptr;
  f->exceptions[0] = f->exceptions[1] = nullptr;
  f->now = fiber::state::blocked;
  ++of.running;
  wake(*f);
  return *f;
}

void world::at(nanos when, std::function<void()> call) {
  std::size_t slot = calls_.size();
  if (free_calls_.empty()) {
    calls_.push_back(std::move(call));
  } else {
    slot = free_calls_.back();
    free_calls_.pop_back();
    calls_[slot] = std::move(call);
  }
  queue_.push_back({std::max(when, now_), ++order_, nullptr, 0, slot});
  std::push_heap(queue_.begin(), queue_.end());
}

void world::schedule(fiber& f, nanos when) {
  queue_.push_back({when, ++order_, &f, f.generation, 0});
  std::push_heap(queue_.begin(), queue_.end());
}

// The delay from when the thread was due: mostly a few microseconds, and now and then as long as on
// a busy machine.
nanos world::latency(process& p, nanos from) {
  if (machine_.stall_per_100k != 0 && random_.below(100'000) < machine_.stall_per_100k) {
    const nanos late = random_.between(5 * millisecond, 700 * millisecond);
    const auto stalls = [&p, until = from + late] {
      p.steady_since = std::max(p.steady_since, until);
      p.meets(trouble::stall);
    };
    from > now_ ? at(from, stalls) : stalls();
    return late;
  }
  if (random_.permille(machine_.slow_permille)) {
    return random_.between(20 * microsecond, 1 * millisecond);
  }
  return random_.between(1 * microsecond, 20 * microsecond);
}

void world::wake(fiber& f) {
  if (f.now != fiber::state::blocked) return;
  f.now = fiber::state::ready;
  f.timed_out = false;
  ++f.generation;
  schedule(f, now_ + latency(*f.of, now_));
}

bool world::block(nanos until, const void* for_what) {
  fiber& me = *self_;
  me.now = fiber::state::blocked;
  me.waits_for = for_what;
  me.slept_before = me.of->slept;
  if (until != never) {
    const nanos due = std::max(until, now_);
    schedule(me, due + latency(*me.of, due));
  }
  leave(me);
  return !me.timed_out;
}

void world::yield() {
  fiber& me = *self_;
  me.now = fiber::state::blocked;
  wake(me);
  leave(me);
}

void world::preempt_sometimes() {
  if (self_ != nullptr && random_.permille(machine_.preempt_permille)) yield();
}

void world::pause(process& p, nanos until) {
  p.meets(trouble::pause);
  p.paused_until = std::max(p.paused_until, until);
  p.steady_since = std::max(p.steady_since, until);
}

void world::suspend(process& p, nanos until) {
  p.slept += std::max<nanos>(until - std::max(now_, p.paused_until), 0);
  p.meets(trouble::suspended);
  pause(p, until);
  p.steady_since = std::max(p.steady_since, until + notices_sleep_within);
}

void world::kill(process& p) {
  for (const auto& other : processes_) other->meets(trouble::death_of_another);
  p.dead = true;
  p.running = 0;
}

bool world::run(nanos until) {
  the_world = this;
  while (!queue_.empty() && !stopped_) {
    const event e = queue_.front();
    if (e.when > until) break;
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    if (e.who == nullptr) {
      now_ = std::max(now_, e.when);
      const auto call = std::move(calls_[e.call]);
      free_calls_.push_back(e.call);
      call();
      continue;
    }
    fiber& f = *e.who;
    if (f.now == fiber::state::over || f.of->dead || e.generation != f.generation) continue;
    if (f.now == fiber::state::blocked && f.of->slept > f.slept_before) {
      const nanos longer = f.of->slept - std::exchange(f.slept_before, f.of->slept);
      schedule(f, e.when + longer);
      continue;
    }
    if (f.of->paused_until > e.when) {
      schedule(f, f.of->paused_until + latency(*f.of, f.of->paused_until));
      continue;
    }
    now_ = std::max(now_, e.when);
    if (f.now == fiber::state::blocked) {
      f.timed_out = true;
      ++f.generation;
    }
    resume(f);
  }
  the_world = nullptr;
  return not_over().empty();
}

std::vector<const fiber*> world::not_over() const {
  std::vector<const fiber*> all;
  for (const auto& f : fibers_) {
    if (f->now != fiber::state::over && !f->of->dead) all.push_back(f.get());
  }
  return all;
}

// Exchanges the data that belongs to a thread; called before and after a fiber runs.
void world::swap_thread(fiber& f) {
  const auto& all = locals();
  std::memcpy(main_locals_.data(), all.where, all.size);
  std::memcpy(all.where, f.thread_locals.data(), all.size);
  f.thread_locals.swap(main_locals_);
  auto* const exceptions = reinterpret_cast<std::byte*>(abi::__cxa_get_globals());
  std::byte kept[sizeof f.exceptions];
  std::memcpy(kept, exceptions, sizeof kept);
  std::memcpy(exceptions, f.exceptions, sizeof kept);
  std::memcpy(f.exceptions, kept, sizeof kept);
  std::swap(errno, f.error_number);
}

void world::resume(fiber& f) {
  ++switches_;
  f.now = fiber::state::running;
  swap_thread(f);
  self_ = &f;
  if (_setjmp(main_) == 0) {
    if (f.begun) _longjmp(f.at, 1);
    f.begun = true;
    ucontext_t first;
    getcontext(&first);
    first.uc_stack.ss_sp = f.stack + guard_size;
    first.uc_stack.ss_size = stack_size;
    first.uc_link = nullptr;
    makecontext(&first, &world::enter, 0);
    setcontext(&first);
  }
  fiber& last = *self_;
  self_ = nullptr;
  swap_thread(last);
  if (last.now == fiber::state::over) end(last);
}

std::string world::stack_of(const fiber& f) {
  std::string all;
  for (int i = 0; i < f.calls_count; ++i) {
    Dl_info info{};
    if (dladdr(f.calls[i], &info) == 0 || info.dli_sname == nullptr) continue;
    int status = 0;
    char* const readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    std::string name = readable == nullptr ? info.dli_sname : readable;
    std::free(readable);
    name = name.substr(0, name.find('('));
    if (name.find("simulation") != std::string::npos || name.starts_with("std::")) continue;
    if (name.starts_with("pthread") || name.starts_with("void std::")) continue;
    all += (all.empty() ? "" : " < ") + name;
  }
  return all;
}

void world::leave(fiber& f) {
  if (keeps_stacks_) f.calls_count = backtrace(f.calls, 24);
  if (_setjmp(f.at) == 0) _longjmp(main_, 1);
}

void world::enter() {
  fiber& me = *the_world->self_;
  me.work();
  me.work = nullptr;
  while (!me.at_thread_exit.empty()) {
    const auto [call, object] = me.at_thread_exit.back();
    me.at_thread_exit.pop_back();
    call(object);
  }
  me.now = fiber::state::over;
  the_world->leave(me);
}

void world::end(fiber& f) {
  --f.of->running;
  ++f.generation;
  if (f.joiner != nullptr) wake(*f.joiner);
  if (f.outlives_session) free_fibers_.push_back(&f);
}

}  // namespace simulation
