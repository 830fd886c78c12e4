#pragma once

#include <cstdint>
#include <functional>
#include <holdfast/store/command.hpp>
#include <map>
#include <string>
#include <vector>

/// The rules of the permits kernel, checked from outside at every step of a history: what may
/// change, what must, and what the reply may report. The kernel is a function, so that kernels with
/// seeded bugs can be tested.
namespace kernel_test {

using apply_function = std::function<holdfast::store::permits_reply(
    holdfast::store::permits_record&, const holdfast::store::permits_command&,
    const holdfast::store::moment&)>;

/// The secret that an owner of these histories keeps until it releases.
inline holdfast::store::owner_id secret_of(const holdfast::store::owner_id& owner) {
  return {~owner.high, owner.low};
}

/// The unchanged kernel.
apply_function real_kernel();

class permits_rules {
 public:
  explicit permits_rules(apply_function apply) : apply_(std::move(apply)) {}

  /// Carries out a command, and checks all rules; also that repeating it changes nothing more.
  holdfast::store::permits_reply step(const holdfast::store::permits_command& command,
                                      const holdfast::store::moment& now);
  /// The store lost its data.
  void lose_record() {
    record_ = {};
    behind_.clear();
  }

  const holdfast::store::permits_record& record() const { return record_; }
  /// The greatest fence ever granted.
  std::uint64_t greatest_fence() const { return greatest_fence_; }
  /// The rules that were broken, in words.
  const std::vector<std::string>& broken() const { return broken_; }

 private:
  struct situation;  // one step: before, command, moment, after, reply

  void check_state(const situation& s);
  void check_fences(const situation& s);
  void check_grants(const situation& s);
  void check_secrets(const situation& s);
  void learn_predecessor(const situation& s);
  void check_wanted(const situation& s);
  void check_order(const situation& s);
  void check_others(const situation& s);
  void check_reply(const situation& s);
  void check_repetition(const situation& s);
  void expect(bool rule_kept, const situation& s, const char* rule);

  apply_function apply_;
  holdfast::store::permits_record record_;
  std::map<holdfast::store::owner_id, std::uint64_t> arrival_;  // when each waiter was queued
  std::uint64_t arrivals_ = 0;
  /// The owner that a reply named to a waiter as the one before it, while that owner is there.
  std::map<holdfast::store::owner_id, holdfast::store::owner_id> behind_;
  std::uint64_t greatest_fence_ = 0;
  std::vector<std::string> broken_;
};

/// A command and a record in words, for messages.
std::string describe(const holdfast::store::permits_command& command);
std::string describe(const holdfast::store::permits_record& record);

}  // namespace kernel_test
