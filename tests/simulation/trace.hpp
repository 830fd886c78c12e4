#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/world.hpp"

namespace simulation {

/// A record of the events for a person: one line an event, one column a thread. Costs nothing while
/// off.
class trace {
 public:
  explicit trace(const world& of, bool on) : world_(of), on_(on) {}
  bool on() const noexcept { return on_; }

  /// Adds an event of the running thread, or of the world (a fault).
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
