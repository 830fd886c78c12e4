#pragma once

#include <array>
#include <cstdint>
#include <holdfast/store/command.hpp>
#include <string>

#include "harness/seed.hpp"
#include "kernel/permits_rules.hpp"

namespace kernel_test {

/// One random history: a few owners that do everything the engine may do with one name, at times
/// that fall before, on and after the ends of leases, on a store that now and then loses its data.
class random_history {
 public:
  explicit random_history(harness::random& random);
  void play(permits_rules& rules, int steps);

 private:
  holdfast::store::permits_command command(const holdfast::store::permits_record& record);
  void pass_time(const holdfast::store::permits_record& record);
  static void repeat_request(const holdfast::store::permits_record& record,
                             holdfast::store::permits_command& command);
  std::uint32_t weight();
  holdfast::store::owner_id owner() { return {1, random_.between<std::uint64_t>(1, owners_)}; }

  harness::random& random_;
  std::uint64_t owners_;
  holdfast::store::kind kind_;
  std::uint32_t capacity_;
  bool priorities_;
  holdfast::store::moment now_;
  std::int64_t latest_wall_;
  std::array<std::string, 4> peers_{"p1", "p2", "p3", ""};
};

}  // namespace kernel_test
