#include "store/sqlite/sqlite.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

const store::driver& sqlite() noexcept {
  using namespace store::sqlite;
  static constexpr store::driver all{"sqlite", open_over_family<read_options, open_sqlite>};
  return all;
}

}  // namespace holdfast::drivers
