#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "kernel/permits_rules.hpp"

/// Kernels with one bug each, made by wrapping the real one: mistakes that an author could make.
namespace kernel_test {

struct bug {
  std::string name;
  std::function<apply_function()> kernel;
  std::string breaks;  ///< the beginning of the rule that notices it first; empty: any
};

std::vector<bug> permits_bugs();

inline std::ostream& operator<<(std::ostream& out, const bug& b) { return out << b.name; }

}  // namespace kernel_test
