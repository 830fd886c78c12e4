#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/seed.hpp"
#include "kernel/countdown.hpp"
#include "kernel/times.hpp"

// Random histories of a latch, against a model that keeps only sums.
namespace kernel_test {
namespace {

using namespace holdfast::store;
using enum countdown_outcome;
using countdown_function = countdown_reply (*)(countdown_record&, const countdown_command&,
                                               const moment&);

constexpr int histories = 12'000;
constexpr int steps = 40;  // in less than the minute for which arrivals are remembered

class countdown_history {
 public:
  countdown_history(harness::random& random, countdown_function apply)
      : random_(random), apply_(apply), count_(random.between(1u, 6u)) {}

  /// The first rule that was broken, or nothing.
  std::string play() {
    for (int i = 0; i < steps && broken_.empty(); ++i) step();
    return broken_;
  }

 private:
  void step() {
    now_.now_at += random_.one_in(3) ? random_.between<std::int64_t>(0, second) : 1;
    const countdown_command c = command();
    const countdown_record before = record_;
    const countdown_reply reply = apply_(record_, c, now_);
    check_count(c, reply);
    check_waiters(c, reply);
    check_telling(before, reply);
    check_repetition(c, reply);
  }

  countdown_command command() {
    countdown_command c;
    const int verb = random_.between(0, 9);
    c.verb = verb < 4   ? countdown_verb::arrive
             : verb < 8 ? countdown_verb::wait
             : verb < 9 ? countdown_verb::leave
                        : countdown_verb::inspect;
    c.owner = {c.verb == countdown_verb::arrive ? 1u : 2u, random_.between<std::uint64_t>(1, 8)};
    c.count = record_.count != 0 && random_.one_in(30) ? count_ + 1 : count_;
    c.drop = random_.between(0u, count_);
    c.queue_lease_us = random_.one_in(5) ? 0 : 2 * second;
    c.keep_us = 3'600 * second;
    return c;
  }

  void expect(bool kept, const char* rule) {
    if (!kept && broken_.empty()) broken_ = rule;
  }

  void check_count(const countdown_command& c, const countdown_reply& reply) {
    const bool counted = c.verb == countdown_verb::arrive && !arrived_.contains(c.owner) &&
                         (reply.outcome == open || reply.outcome == closed);
    if (counted) {
      arrived_.insert(c.owner);
      sum_ += c.drop;
    }
    expect(sum_ <= count_, "never more arrives than the count");
    if (record_.count == 0) return expect(sum_ == 0, "what was counted is not forgotten");
    expect(record_.count == count_, "the count stays what it was");
    expect(record_.remaining == count_ - sum_, "what remains is the count less what arrived");
    if (reply.outcome != capacity_mismatch) {
      expect(reply.remaining == record_.remaining, "the reply says what remains");
    }
    if (reply.outcome == open) expect(sum_ == count_, "it is open when all have arrived");
    if (reply.outcome == closed) expect(sum_ < count_, "it is closed until all have arrived");
  }

  void check_waiters(const countdown_command& c, const countdown_reply& reply) {
    const auto waits = std::count_if(record_.waiting.begin(), record_.waiting.end(),
                                     [&](const waiter& w) { return w.owner == c.owner; });
    if (c.verb == countdown_verb::wait && reply.outcome == closed) {
      expect(waits == (c.queue_lease_us > 0 ? 1 : 0), "a waiter is in the list once");
    } else if (c.verb != countdown_verb::inspect && c.verb != countdown_verb::arrive) {
      expect(waits == 0 || reply.outcome == capacity_mismatch, "no other caller is in the list");
    }
    for (const waiter& w : record_.waiting) {
      expect(w.expires_at > now_.now_at, "a waiter whose place has ended is gone");
    }
    expect(record_.remaining > 0 || record_.waiting.empty(), "there is no waiter at an open latch");
  }

  void check_telling(const countdown_record& before, const countdown_reply& reply) {
    std::set<owner_id> told;
    for (const notification& n : reply.tell) told.insert(n.owner);
    std::set<owner_id> expected;
    if (reply.outcome == open) {
      for (const waiter& w : before.waiting) {
        if (w.expires_at > now_.now_at) expected.insert(w.owner);
      }
    }
    expect(told == expected && told.size() == reply.tell.size(), "all waiters are notified, once");
  }

  void check_repetition(const countdown_command& c, const countdown_reply& reply) {
    countdown_record again = record_;
    const auto second_reply = apply_(again, c, now_);
    expect(again == record_ && second_reply.outcome == reply.outcome &&
               second_reply.remaining == reply.remaining && second_reply.tell.empty(),
           "repeating a command changes nothing more");
  }

  harness::random& random_;
  countdown_function apply_;
  std::uint32_t count_;
  std::uint32_t sum_ = 0;
  std::set<owner_id> arrived_;
  countdown_record record_;
  moment now_{0, 1'700'000'000 * second};
  std::string broken_;
};

std::string first_broken_rule(countdown_function apply) {
  for (int i = 0; i < histories; ++i) {
    harness::random random(static_cast<std::uint64_t>(i));
    if (auto broken = countdown_history(random, apply).play(); !broken.empty()) {
      return broken + " (history " + std::to_string(i) + ")";
    }
  }
  return {};
}

countdown_reply real(countdown_record& r, const countdown_command& c, const moment& now) {
  return holdfast::kernel::apply(r, c, now);
}

countdown_reply forgets_arrivals(countdown_record& r, const countdown_command& c,
                                 const moment& now) {
  r.arrivals.clear();
  return real(r, c, now);
}

countdown_reply wakes_only_one(countdown_record& r, const countdown_command& c, const moment& now) {
  auto reply = real(r, c, now);
  if (reply.tell.size() > 1) reply.tell.resize(1);
  return reply;
}

countdown_reply goes_below_zero(countdown_record& r, const countdown_command& c,
                                const moment& now) {
  auto changed = c;
  if (r.count != 0 && r.remaining != 0) changed.drop = std::min(c.drop, r.remaining);
  return real(r, changed, now);
}

countdown_reply keeps_waiters_that_left(countdown_record& r, const countdown_command& c,
                                        const moment& now) {
  auto changed = c;
  if (c.verb == countdown_verb::leave) changed.verb = countdown_verb::inspect;
  return real(r, changed, now);
}

TEST(countdown_histories, every_rule_holds_at_every_step_of_random_histories) {
  EXPECT_EQ(first_broken_rule(real), "") << "seed " << harness::seed();
}

TEST(countdown_histories, seeded_bugs_are_caught) {
  EXPECT_NE(first_broken_rule(forgets_arrivals), "");
  EXPECT_NE(first_broken_rule(wakes_only_one), "");
  EXPECT_NE(first_broken_rule(goes_below_zero), "");
  EXPECT_NE(first_broken_rule(keeps_waiters_that_left), "");
}

}  // namespace
}  // namespace kernel_test
