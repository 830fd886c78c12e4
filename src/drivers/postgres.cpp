#include "store/postgres/postgres.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

namespace {

opened open_postgres(const store::opening& how) {
  auto options = options_of<store::postgres::read_options>(how);
  if (!options) return std::move(options.error());
  const std::string url = options->url;
  if (options->session_mode)
    return named(url, store::postgres::open_postgres_session(std::move(*options)));
  return named(url, over(store::postgres::open_postgres(std::move(*options)), how.clock));
}

}  // namespace

const store::driver& postgres() noexcept {
  static constexpr store::driver all{"postgres", open_postgres};
  return all;
}

}  // namespace holdfast::drivers
