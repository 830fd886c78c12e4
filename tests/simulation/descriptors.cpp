// Waiting for descriptors in a simulated thread. As in threads.cpp, this program's own definitions
// come before those of the C library; outside the simulation they pass the call on.
#include "simulation/descriptors.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "simulation/next_function.hpp"
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
  void wait_here(fiber& who) override { readers_.push_back(&who); }
  void leave_here(const fiber& who) noexcept override { std::erase(readers_, &who); }
  void add(std::uint64_t n) {
    count_ += n;
    for (fiber* const who : readers_) world::running()->wake(*who);
  }
  std::uint64_t take() noexcept { return std::exchange(count_, 0); }

 private:
  std::uint64_t count_ = 0;
  std::vector<fiber*> readers_;
};

struct owned {
  std::unique_ptr<descriptor> what;
  const process* by;
};

// Never destroyed: it contains what a killed process had.
std::map<int, owned>& all_owned() {
  static auto& all = *new std::map<int, owned>;
  return all;
}

event_counter* counter(int number) { return dynamic_cast<event_counter*>(find_descriptor(number)); }

int look(pollfd* all, nfds_t count) {
  int some = 0;
  for (nfds_t i = 0; i < count; ++i) {
    const auto* const d = found(all[i].fd);
    all[i].revents = d == nullptr ? short{0} : d->ready(all[i].events);
    some += all[i].revents != 0 ? 1 : 0;
  }
  return some;
}

// A descriptor that is closed meanwhile wakes no thread any more; numbers are never reused.
void block_at(pollfd* all, nfds_t count, nanos until) {
  fiber& me = *world::self();
  for (nfds_t i = 0; i < count; ++i) {
    if (auto* const d = found(all[i].fd)) d->wait_here(me);
  }
  (void)world::running()->block(until, all);
  for (nfds_t i = 0; i < count; ++i) {
    if (auto* const d = found(all[i].fd)) d->leave_here(me);
  }
}

int wait_for_any(pollfd* all, nfds_t count, nanos until) {
  world& w = *world::running();
  for (;;) {
    const int some = look(all, count);
    if (some > 0 || w.now() >= until) return some;
    block_at(all, count, until);
  }
}

}  // namespace

int open_descriptor(descriptor& d) {
  static int last = first_number;
  all_descriptors()[++last] = &d;
  return last;
}

void close_descriptor(int number) noexcept { all_descriptors().erase(number); }

int open_descriptor(std::unique_ptr<descriptor> d) {
  const int number = open_descriptor(*d);
  all_owned().emplace(number, owned{std::move(d), world::self()->of});
  return number;
}

descriptor* find_descriptor(int number) noexcept {
  const auto at = all_owned().find(number);
  return at == all_owned().end() ? nullptr : at->second.what.get();
}

std::size_t open_descriptors_of(const process& p) noexcept {
  return static_cast<std::size_t>(std::count_if(all_owned().begin(), all_owned().end(),
                                                [&](const auto& d) { return d.second.by == &p; }));
}

}  // namespace simulation

using simulation::world;

extern "C" {

int poll(pollfd* all, nfds_t count, int milliseconds) {
  if (world::self() == nullptr) return HOLDFAST_REAL(poll)(all, count, milliseconds);
  const auto until = milliseconds < 0
                         ? simulation::never
                         : world::running()->now() + milliseconds * simulation::millisecond;
  return simulation::wait_for_any(all, count, until);
}

int ppoll(pollfd* all, nfds_t count, const timespec* length, const sigset_t* mask) {
  if (world::self() == nullptr) return HOLDFAST_REAL(ppoll)(all, count, length, mask);
  const auto until = length == nullptr ? simulation::never
                                       : world::running()->now() +
                                             length->tv_sec * simulation::second + length->tv_nsec;
  return simulation::wait_for_any(all, count, until);
}

int eventfd(unsigned first, int flags) noexcept {
  if (world::self() == nullptr) return HOLDFAST_REAL(eventfd)(first, flags);
  return simulation::open_descriptor(std::make_unique<simulation::event_counter>());
}

ssize_t write(int number, const void* from, std::size_t size) {
  auto* const to = simulation::counter(number);
  if (to == nullptr) return HOLDFAST_REAL(write)(number, from, size);
  std::uint64_t n = 0;
  std::memcpy(&n, from, sizeof n);
  to->add(n);
  return sizeof n;
}

ssize_t read(int number, void* to, std::size_t size) {
  auto* const from = simulation::counter(number);
  if (from == nullptr) return HOLDFAST_REAL(read)(number, to, size);
  const std::uint64_t n = from->take();
  if (n == 0) {
    errno = EAGAIN;
    return -1;
  }
  std::memcpy(to, &n, sizeof n);
  return sizeof n;
}

// The C library's own versions would bypass the two functions above.
int eventfd_write(int number, eventfd_t n) {
  return write(number, &n, sizeof n) == sizeof n ? 0 : -1;
}

int eventfd_read(int number, eventfd_t* n) {
  return read(number, n, sizeof *n) == sizeof *n ? 0 : -1;
}

int close(int number) {
  if (simulation::all_owned().erase(number) == 0) return HOLDFAST_REAL(close)(number);
  simulation::close_descriptor(number);
  return 0;
}

}  // extern "C"
