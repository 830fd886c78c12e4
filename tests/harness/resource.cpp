#include "harness/resource.hpp"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace harness {

bool can_act(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return false;
  // Parses "pid (name, which may contain anything) state ppid pgrp session tty tpgid flags …"
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  std::string state;
  long long ppid = 0, pgrp = 0, session = 0, tty = 0, tpgid = 0;
  unsigned long flags = 0;
  rest >> state >> ppid >> pgrp >> session >> tty >> tpgid >> flags;
  constexpr unsigned long exiting = 0x4;  // PF_EXITING in the kernel's sched.h
  return state != "Z" && state != "X" && (flags & exiting) == 0;
}

// A store may see a death, and hand the lock on, before this process learns of it: so a process
// that finds another one inside checks whether that one is alive.
std::uint64_t resource::weight_of_others(std::uint32_t worker) const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < max_workers; ++i) {
    if (i == worker) continue;
    const std::uint64_t inside = page_->places[i].inside.load();
    if (inside != 0 && can_act(static_cast<pid_t>(inside >> 32))) sum += inside & 0xffffffffu;
  }
  return sum;
}

void resource::enter(const visit& v) {
  auto& mine = page_->places.at(v.worker);
  const auto pid = static_cast<std::uint64_t>(::getpid());
  mine.begin = tick();
  mine.inside.store(pid << 32 | v.weight);
  page_->entries.fetch_add(1);
  if (v.weight + weight_of_others(v.worker) > v.capacity) page_->overlaps.fetch_add(1);
  if (v.weight != v.capacity) return;
  if (page_->greatest_fence.exchange(v.fence) >= v.fence) page_->fence_errors.fetch_add(1);
}

void resource::work() {
  auto& counter = reinterpret_cast<volatile std::uint64_t&>(page_->counter);
  const std::uint64_t before = counter;
  ::sched_yield();
  counter = before + 1;
  page_->works.fetch_add(1);
}

void resource::leave(const visit& v) {
  auto& mine = page_->places.at(v.worker);
  mine.inside.store(0);
  record(v, mine.begin, tick());
}

void resource::record(const visit& v, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t at = page_->written.fetch_add(1);
  if (at >= max_events) throw std::length_error("the history of the resource is full");
  page_->events[at] = {.begin = begin,
                       .end = end,
                       .worker = v.worker,
                       .fence = v.fence,
                       .weight = v.weight,
                       .asked = v.asked};
}

bool resource::guarded_write(std::uint64_t fence) {
  std::uint64_t seen = page_->greatest_fence.load();
  while (fence >= seen) {
    if (page_->greatest_fence.compare_exchange_weak(seen, fence)) return true;
  }
  page_->refused.fetch_add(1);
  return false;
}

resource::totals resource::count() const {
  const auto& p = *page_;
  return {p.entries.load(),  p.works.load(),        p.counter,
          p.overlaps.load(), p.fence_errors.load(), p.refused.load()};
}

std::vector<hold_event> resource::history() const {
  const auto& events = page_->events;
  std::vector<hold_event> finished;
  for (std::size_t i = 0; i < std::min<std::size_t>(page_->written.load(), max_events); ++i) {
    if (events[i].end != 0) finished.push_back(events[i]);  // 0: it died before recording this
  }
  return finished;
}

}  // namespace harness
