#pragma once

#include <gtest/gtest.h>

#include <holdfast/store/command.hpp>

#include "kernel/permits.hpp"
#include "kernel/times.hpp"

namespace kernel_test {

using namespace holdfast::store;

constexpr std::int64_t wall_start = 1'700'000'000 * second;

/// One record, a clock, and short names for the commands. Owners are small numbers.
class permits : public testing::Test {
 protected:
  permits_reply apply(const permits_command& c) {
    last_ = holdfast::kernel::apply(record_, c, {now_, wall_start + now_});
    return last_;
  }

  permits_command command(permits_verb verb, std::uint64_t owner) const {
    permits_command c;
    c.verb = verb;
    c.owner = {0, owner};
    c.kind = kind_;
    c.capacity = capacity_;
    c.lease_us = lease_;
    c.queue_lease_us = place_;
    c.peer = peers_[owner % 10];
    return c;
  }

  permits_reply acquire(std::uint64_t owner, std::uint32_t weight = 1, std::int32_t priority = 0) {
    permits_command c = command(permits_verb::acquire, owner);
    c.weight = weight;
    c.priority = priority;
    c.wait = true;
    return apply(c);
  }
  permits_reply try_acquire(std::uint64_t owner, std::uint32_t weight = 1) {
    permits_command c = command(permits_verb::acquire, owner);
    c.weight = weight;
    return apply(c);
  }
  permits_reply renew(std::uint64_t owner) { return apply(command(permits_verb::renew, owner)); }
  permits_reply release(std::uint64_t owner) {
    return apply(command(permits_verb::release, owner));
  }
  permits_reply resize(std::uint64_t owner, std::uint32_t weight) {
    permits_command c = command(permits_verb::resize, owner);
    c.weight = weight;
    return apply(c);
  }
  permits_reply evict(std::uint64_t owner) { return apply(command(permits_verb::evict, owner)); }

  void pass(std::int64_t by) { now_ += by; }

  /// "1 2 | 3 4": holders, then waiters, as numbers.
  std::string who() const {
    std::string text;
    for (const auto& h : record_.holders) text += std::to_string(h.owner.low) + " ";
    text += "|";
    for (const auto& w : record_.queue) text += " " + std::to_string(w.owner.low);
    return text;
  }
  std::uint64_t fence_of(std::uint64_t owner) const {
    for (const auto& h : record_.holders) {
      if (h.owner.low == owner) return h.fence;
    }
    return 0;
  }

  permits_record record_;
  permits_reply last_;
  std::int64_t now_ = 100 * second;
  kind kind_ = kind::mutex;
  std::uint32_t capacity_ = 1;
  std::int64_t lease_ = 30 * second;
  std::int64_t place_ = 4 * second;

 private:
  static constexpr std::string_view peers_[] = {"p0", "p1", "p2", "p3", "p4",
                                                "p5", "p6", "p7", "p8", "p9"};
};

}  // namespace kernel_test
