#include "store/postgres/postgres.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

const store::driver& postgres() noexcept {
  using namespace store::postgres;
  static constexpr store::driver all{
      "postgres", open_rows_or_locks<read_options, open_postgres, open_postgres_session>};
  return all;
}

}  // namespace holdfast::drivers
