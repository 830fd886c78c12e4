#pragma once

#include <holdfast/error.hpp>
#include <stop_token>
#include <string>

#include "simulation/scene.hpp"

namespace simulation {

/// One thread at one step: what it wants, and what it is told.
struct actor {
  scene& of;
  process& p;
  const process_plan& does;
  const step& s;
  std::string name;
  nanos asked = 0;

  /// An error that nothing excuses is a finding.
  void judge_error(holdfast::errc code, const std::string& what) const;
  /// Stops when the step says; its thread is the process's.
  std::stop_token stop() const;
  /// For the rule that nobody waits in vain.
  void waits(bool so) const;
  /// After a wait with a limit.
  void judge_wait(bool got, bool stoppable) const;
  int commands_of_a_try() const;
};

/// For as long as it exists, the thread sends no more commands than the header says; asked where
/// nothing goes wrong, of stores that answer an operation by one command.
class cost {
 public:
  cost(const actor& who, const char* what, std::uint64_t most)
      : who_(who), what_(what), most_(world::self()->commands + most) {}
  cost(const cost&) = delete;
  ~cost();

 private:
  const actor& who_;
  const char* what_;
  const std::uint64_t most_;
};

}  // namespace simulation
