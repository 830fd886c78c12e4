// Waiting for descriptors in a simulated thread. As in threads.cpp this program's own definitions
// come before those of the C library; outside of the simulation they pass the call on.
#include "simulation/descriptors.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "simulation/world.hpp"

namespace simulation {

namespace {

constexpr int first_number = 1'000'000;

std::map<int, descriptor*>& all_descriptors() {
  static std::map<int, descriptor*> all;
  return all;
}

descriptor* found(int number) {
  const auto at = all_descriptors().find(number);
  return at == all_descriptors().end() ? nullptr : at->second;
}

class event_counter final : public descriptor {
 public:
  short ready(short events) const noexcept override {
    return static_cast<short>(events & (count_ > 0 ? POLLIN | POLLOUT : POLLOUT));
  }
  void wait_here(fiber* who) noexcept override { reader_ = who; }
  void add(std::uint64_t n) {
    count_ += n;
    if (reader_ != nullptr) world::running()->wake(*reader_);
  }
  std::uint64_t take() noexcept { return std::exchange(count_, 0); }

 private:
  std::uint64_t count_ = 0;
  fiber* reader_ = nullptr;
};

std::map<int, std::unique_ptr<event_counter>>& all_counters() {
  static std::map<int, std::unique_ptr<event_counter>> all;
  return all;
}

int look(pollfd* all, nfds_t count) {
  int some = 0;
  for (nfds_t i = 0; i < count; ++i) {
    const auto* const d = found(all[i].fd);
    all[i].revents = d == nullptr ? short{0} : d->ready(all[i].events);
    some += all[i].revents != 0 ? 1 : 0;
  }
  return some;
}

void wait_at(const pollfd* all, nfds_t count, fiber* who) {
  for (nfds_t i = 0; i < count; ++i) {
    if (auto* const d = found(all[i].fd)) d->wait_here(who);
  }
}

int wait_for_any(pollfd* all, nfds_t count, nanos until) {
  world& w = *world::running();
  for (;;) {
    const int some = look(all, count);
    if (some > 0 || w.now() >= until) return some;
    wait_at(all, count, world::self());
    (void)w.block(until, all);
    wait_at(all, count, nullptr);
  }
}

template <class Function>
Function* passed_on(const char* name) {
  void* const known = dlsym(RTLD_NEXT, name);
  if (known == nullptr) std::abort();
  return reinterpret_cast<Function*>(known);
}

}  // namespace

int open_descriptor(descriptor& d) {
  static int last = first_number;
  all_descriptors()[++last] = &d;
  return last;
}

void close_descriptor(int number) noexcept { all_descriptors().erase(number); }

}  // namespace simulation

using simulation::world;

extern "C" {

int poll(pollfd* all, nfds_t count, int milliseconds) {
  if (world::self() == nullptr) {
    static auto* const known = simulation::passed_on<int(pollfd*, nfds_t, int)>("poll");
    return known(all, count, milliseconds);
  }
  const auto until = milliseconds < 0
                         ? simulation::never
                         : world::running()->now() + milliseconds * simulation::millisecond;
  return simulation::wait_for_any(all, count, until);
}

int ppoll(pollfd* all, nfds_t count, const timespec* length, const sigset_t* mask) {
  if (world::self() == nullptr) {
    static auto* const known =
        simulation::passed_on<int(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
    return known(all, count, length, mask);
  }
  const auto until = length == nullptr ? simulation::never
                                       : world::running()->now() +
                                             length->tv_sec * simulation::second + length->tv_nsec;
  return simulation::wait_for_any(all, count, until);
}

int eventfd(unsigned first, int flags) noexcept {
  if (world::self() == nullptr) {
    static auto* const known = simulation::passed_on<int(unsigned, int)>("eventfd");
    return known(first, flags);
  }
  auto made = std::make_unique<simulation::event_counter>();
  const int number = simulation::open_descriptor(*made);
  simulation::all_counters().emplace(number, std::move(made));
  return number;
}

ssize_t write(int number, const void* from, std::size_t size) {
  const auto at = simulation::all_counters().find(number);
  if (at == simulation::all_counters().end()) {
    static auto* const known =
        simulation::passed_on<ssize_t(int, const void*, std::size_t)>("write");
    return known(number, from, size);
  }
  std::uint64_t n = 0;
  std::memcpy(&n, from, sizeof n);
  at->second->add(n);
  return sizeof n;
}

ssize_t read(int number, void* to, std::size_t size) {
  const auto at = simulation::all_counters().find(number);
  if (at == simulation::all_counters().end()) {
    static auto* const known = simulation::passed_on<ssize_t(int, void*, std::size_t)>("read");
    return known(number, to, size);
  }
  const std::uint64_t n = at->second->take();
  if (n == 0) {
    errno = EAGAIN;
    return -1;
  }
  std::memcpy(to, &n, sizeof n);
  return sizeof n;
}

int close(int number) {
  if (simulation::all_counters().erase(number) == 0) {
    static auto* const known = simulation::passed_on<int(int)>("close");
    return known(number);
  }
  simulation::close_descriptor(number);
  return 0;
}

}  // extern "C"
