#include <random>
#include <thread>

#include "bench/workload.hpp"

// W5: two processes hand one lock to each other. The measured time is from the holder's call of
// unlock() to the return of the waiter's lock(). In W5 the holder waited for something else before,
// so its processor is as cold as the waiter's; in W5-busy it computed.
namespace bench {
namespace {

/// Waits until the other one is in lock() and its thread sleeps: seen three times, so that it is
/// not just on its way there.
void await_other(const participant& other) {
  for (int seen = 0; seen < 3;) {
    seen = other.trying && is_asleep(other.tid) ? seen + 1 : 0;
    if (seen == 0) std::this_thread::yield();
  }
}

/// The holder's work under the lock, for a random time: so a polling baseline is caught at any
/// moment of its interval.
class some_work {
 public:
  some_work(unsigned seed, bool busy) : random_{seed}, busy_{busy} {}
  void operator()() {
    const std::chrono::microseconds length{std::uniform_int_distribution{200, 1200}(random_)};
    if (!busy_) return std::this_thread::sleep_for(length);  // as for a disk, or another service
    for (const auto until = clock::now() + length; clock::now() < until;) {
    }
  }

 private:
  std::minstd_rand random_;
  bool busy_;
};

/// The other one is the holder, and hands over to this one.
void receive(shared_state& a, participant& me, handle& grip, std::uint32_t hand_over) {
  me.trying = true;
  grip.lock();
  const auto had_at = now_ns();
  me.trying = false;
  me.wait.add(std::chrono::nanoseconds{had_at - a.released_at});
  ++me.acquired;
  ++a.inside[0];
  a.turn.set(hand_over + 1);
}

/// Returns whether this was the last time. That is reported only when the other one is in lock()
/// for it.
bool give(shared_state& a, const participant& other, handle& grip, some_work& work) {
  await_other(other);
  work();
  const bool last = a.stop;
  if (last) a.release.set(1);
  a.released_at = now_ns();
  grip.unlock();
  return last;
}

void pass_to_and_fro(shared_state& a, unsigned number, subject& s, bool busy) {
  participant& me = a.participants[number];
  const participant& other = a.participants[1 - number];
  const auto grip = s.grip(0);
  some_work work{number + 1, busy};
  a.go.wait_for(1);
  if (number == 0) grip->lock(), a.held.set(1);
  a.held.wait_for(1);
  // The giver waits until the other one has the lock before it asks again; otherwise it would
  // acquire it at once.
  for (std::uint32_t hand_over = 0; a.release.value() == 0; ++hand_over) {
    if (hand_over % 2 != number) {
      receive(a, me, *grip, hand_over);
    } else {
      if (give(a, other, *grip, work)) return;
      a.turn.wait_for(hand_over + 1);
    }
  }
  grip->unlock();
}

void sit_busy(shared_state& a, unsigned number, subject& s) { pass_to_and_fro(a, number, s, true); }

}  // namespace

void give_and_receive(shared_state& a, unsigned number, subject& s) {
  pass_to_and_fro(a, number, s, false);
}

void let_them(const workers& all, shared_state& a, std::chrono::milliseconds length) {
  all.count(false);
  a.go.set(1);
  all.let_pass(length);
  a.stop = true;
  all.join();
  all.count(true);
}

outcome sum_up_hand_overs(const shared_state& a) {
  const histogram waits = all_waits(a);
  outcome o;
  o.acquired = static_cast<double>(waits.total());
  o.ops_per_s = waits.mean_us() > 0 ? 1e6 / waits.mean_us() : 0;
  o.p50_us = waits.percentile_us(0.5);
  o.p99_us = waits.percentile_us(0.99);
  o.store_ops_per_acquire = store_operations(a) / o.acquired;
  return o;
}

const workload w5{
    .name = "W5",
    .about = "hand-over between two processes: from A's unlock call to B's lock returning",
    .processes = 2,
    .threads = 2,
    .own_process = true,
    .by = compared::p50_us,
    .host_baseline = "flock",
    .sit = give_and_receive,
    .conduct = let_them,
    .sum_up = sum_up_hand_overs,
};

const workload w5_busy{
    .name = "W5-busy",
    .about = "the same, while A computes under the lock instead of waiting for something",
    .processes = 2,
    .threads = 2,
    .own_process = true,
    .by = compared::p50_us,
    .host_baseline = "flock",
    .sit = sit_busy,
    .conduct = let_them,
    .sum_up = sum_up_hand_overs,
};

}  // namespace bench
