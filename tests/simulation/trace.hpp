#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/world.hpp"

namespace simulation {

/// What happened, for a person: one line an event, one column a thread. Costs nothing while off.
class trace {
 public:
  explicit trace(const world& of, bool on) : world_(of), on_(on) {}
  bool on() const noexcept { return on_; }

  /// By the thread that runs, or by nobody (a fault).
  void add(std::string what);
  void add(std::string column, std::string what);
  std::string text(std::size_t last_lines) const;

 private:
  struct line {
    nanos when;
    std::string column;
    std::string what;
  };
  const world& world_;
  bool on_;
  std::vector<line> lines_;
};

}  // namespace simulation
