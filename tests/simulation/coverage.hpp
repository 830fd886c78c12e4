#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulation/plan.hpp"

namespace simulation {

/// The operations of a run, each with the troubles that came while it was under way, one bit per
/// trouble.
using meetings_of_a_run = std::map<std::string, std::uint32_t>;

/// The operations of a step, a word each.
std::vector<std::string> operations_of(const plan& p, const process_plan& of, const step& s);

/// Which operations have met which troubles on which kinds of stores.
class coverage {
 public:
  void add(store_kind on, const meetings_of_a_run& met);
  /// The number of pairs, and the pairs that never met.
  std::string text() const;

 private:
  using row = std::array<std::uint64_t, trouble_count>;
  std::map<store_kind, std::map<std::string, row>> met_;
};

}  // namespace simulation
