#include "kernel/random_permits.hpp"

#include <algorithm>
#include <vector>

namespace kernel_test {

using namespace holdfast::store;

namespace {

constexpr std::int64_t one_second = 1'000'000;
constexpr std::uint32_t many_readers = 1u << 30;

bool waits(const permits_record& record, const owner_id& owner) {
  return std::any_of(record.queue.begin(), record.queue.end(),
                     [&](const waiter& w) { return w.owner == owner; });
}

}  // namespace

random_history::random_history(harness::random& random)
    : random_(random),
      owners_(random.between(2u, 8u)),
      kind_(static_cast<kind>(random.between(0, 2))),
      priorities_(random.one_in(3)),
      now_{random.between<std::int64_t>(0, 1'000 * one_second), 1'700'000'000 * one_second},
      latest_wall_(now_.wall_at) {
  if (kind_ == kind::mutex) capacity_ = 1;
  if (kind_ == kind::shared_mutex) capacity_ = many_readers;
  if (kind_ == kind::semaphore) capacity_ = random.between(1u, 6u);
}

void random_history::play(permits_rules& rules, int steps) {
  for (int i = 0; i < steps && rules.broken().empty(); ++i) {
    if (random_.one_in(100)) rules.lose_record();
    pass_time(rules.record());
    rules.step(command(rules.record()), now_);
  }
}

std::uint32_t random_history::weight() {
  if (kind_ == kind::mutex) return 1;
  if (kind_ == kind::shared_mutex) return random_.one_in(3) ? capacity_ : 1;
  return random_.between(1u, capacity_);
}

// Nothing, a little, much, or exactly up to the end of a lease or one tick before it.
void random_history::pass_time(const permits_record& record) {
  std::int64_t by = 0;
  std::vector<std::int64_t> ends;
  for (const auto& h : record.holders) ends.push_back(h.expires_at);
  for (const auto& w : record.queue) ends.push_back(w.expires_at);
  switch (random_.between(0, 5)) {
    case 0:
      by = 1;
      break;
    case 1:
      by = random_.between<std::int64_t>(1, one_second);
      break;
    case 2:
      by = random_.between<std::int64_t>(1, 60 * one_second);
      break;
    case 3:
      if (!ends.empty()) by = random_.pick(ends) - now_.now_at - random_.between(0, 1);
      break;
    default:
      break;
  }
  now_.now_at += std::max<std::int64_t>(by, 0);
  // The wall clock of the store's host may jump either way: it is only a floor for fences.
  now_.wall_at +=
      by + (random_.one_in(20) ? random_.between(-3'600 * one_second, 3'600 * one_second) : 0);
  // Fences survive a loss as long as the clock has not gone back since.
  if (record.last_fence == 0) now_.wall_at = std::max(now_.wall_at, latest_wall_ + one_second);
  latest_wall_ = std::max(latest_wall_, now_.wall_at);
}

// A waiter repeats its request.
void random_history::repeat_request(const permits_record& record, permits_command& c) {
  for (const auto& w : record.queue) {
    if (w.owner != c.owner) continue;
    c.weight = w.weight;
    c.priority = w.priority;
    c.lease_us = w.lease_us;
  }
}

permits_command random_history::command(const permits_record& record) {
  permits_command c;
  c.owner = owner();
  c.kind = kind_;
  c.capacity = capacity_;
  c.weight = weight();
  c.priority = priorities_ ? random_.between(-1, 1) : 0;
  c.wait = !random_.one_in(3);
  c.lease_us = random_.between<std::int64_t>(100'000, 30 * one_second);
  c.queue_lease_us = random_.between<std::int64_t>(1 * one_second, 4 * one_second);
  c.peer = peers_[c.owner.low % peers_.size()];  // an owner belongs to one session
  c.note = "note";
  c.lingers = random_.one_in(3);
  const int verb = random_.between(0, 19);
  c.verb = verb < 10   ? permits_verb::acquire
           : verb < 12 ? permits_verb::renew
           : verb < 16 ? permits_verb::release
           : verb < 18 ? permits_verb::resize
           : verb < 19 ? permits_verb::evict
                       : permits_verb::inspect;
  if (c.verb == permits_verb::evict && random_.one_in(2)) c.owner = {};
  // Only holds are resized or evicted: an owner id belongs to one acquisition.
  if ((c.verb == permits_verb::resize || c.verb == permits_verb::evict) && waits(record, c.owner)) {
    c.verb = permits_verb::renew;
  }
  repeat_request(record, c);
  if (c.verb == permits_verb::release) c.secret = secret_of(c.owner);
  if (c.verb != permits_verb::acquire) return c;
  if (random_.one_in(30)) ++c.capacity;
  if (random_.one_in(30)) c.kind = kind::latch;
  if (random_.one_in(10) && !record.holders.empty()) c.replaces = record.holders.front().owner;
  if (c.replaces == c.owner) c.replaces = {};
  if (c.replaces) c.secret = secret_of(c.replaces);
  if (c.capacity == 1 && random_.one_in(6)) {  // as the locks of a quorum
    // Another node's time: not so far ahead that a loss would take it back.
    c.fence_at_least =
        static_cast<std::uint64_t>(latest_wall_ + random_.between(-3L, one_second / 2));
  }
  return c;
}

}  // namespace kernel_test
