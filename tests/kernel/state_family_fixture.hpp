#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "family/state_family.hpp"
#include "kernel/fake_state_store.hpp"

namespace kernel_test {

/// The family over a store in memory whose time stands still, and which sees dead processes.
class state_family : public testing::Test {
 protected:
  using permits_command = holdfast::store::permits_command;
  using permits_reply = holdfast::store::permits_reply;
  using permits_record = holdfast::store::permits_record;
  using permits_verb = holdfast::store::permits_verb;
  using countdown_command = holdfast::store::countdown_command;

  static constexpr std::int64_t second = 1'000'000;

  state_family() { port_.capabilities.sees_death = true; }

  permits_command command(permits_verb verb, std::uint64_t owner) const {
    permits_command c;
    c.verb = verb;
    c.owner = {0, owner};
    c.wait = true;
    c.lease_us = 30 * second;
    c.queue_lease_us = 4 * second;
    c.peer = peers_[owner % 5];
    return c;
  }
  permits_reply acquire(std::uint64_t owner, std::string_view name = "n") {
    auto r = family_->permits(name, command(permits_verb::acquire, owner));
    return std::move(r).value();
  }
  permits_reply release(std::uint64_t owner) {
    return family_->permits("n", command(permits_verb::release, owner)).value();
  }
  holdfast::result<holdfast::store::countdown_reply> wait_at_latch(std::string_view name) {
    countdown_command c;
    c.verb = holdfast::store::countdown_verb::wait;
    c.owner = {1, 1};
    c.count = 2;
    c.queue_lease_us = 4 * second;
    c.keep_us = 60 * second;
    c.peer = "p1";
    return family_->countdown(name, c);
  }
  /// One arrival of two, at a latch that is kept for a second.
  static countdown_command arrival(holdfast::store::owner_id owner) {
    countdown_command c;
    c.verb = holdfast::store::countdown_verb::arrive;
    c.owner = owner;
    c.count = 2;
    c.drop = 1;
    c.keep_us = second;
    return c;
  }
  /// Of owner 3, which does not wait.
  std::vector<holdfast::store::named_command> asks_for(std::vector<std::string_view> names) const {
    std::vector<holdfast::store::named_command> all;
    for (const auto name : names) {
      all.push_back({name, command(permits_verb::acquire, 3)});
      all.back().command.wait = false;
    }
    return all;
  }
  std::vector<permits_reply> together(std::vector<std::string_view> names) {
    return family_->acquire_together(asks_for(std::move(names))).value();
  }
  void pass(std::int64_t us) { port_.now.now_at += us, port_.now.wall_at += us; }
  permits_record record() { return family_->permits("n", {}).value().found; }

  fake_state_store* const made_ = new fake_state_store;
  fake_state_store& port_ = *made_;
  std::unique_ptr<holdfast::store::session_store> family_ =
      holdfast::family::over(std::unique_ptr<holdfast::store::state_store>(made_));

 private:
  static constexpr std::string_view peers_[] = {"p0", "p1", "p2", "p3", "p4"};
};

}  // namespace kernel_test
