#include "store/mariadb/mariadb.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

const store::driver& mariadb() noexcept {
  using namespace store::mariadb;
  static constexpr store::driver all{
      "mariadb", open_rows_or_locks<read_options, open_mariadb, open_mariadb_session>};
  return all;
}

}  // namespace holdfast::drivers
