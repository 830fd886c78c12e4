#include "store/mariadb/mariadb.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

namespace {

opened open_mariadb(const store::opening& how) {
  auto options = options_of<store::mariadb::read_options>(how);
  if (!options) return std::move(options.error());
  const std::string url = options->url;
  if (options->session_mode)
    return named(url, store::mariadb::open_mariadb_session(std::move(*options)));
  return named(url, over(store::mariadb::open_mariadb(std::move(*options)), how.clock));
}

}  // namespace

const store::driver& mariadb() noexcept {
  static constexpr store::driver all{"mariadb", open_mariadb};
  return all;
}

}  // namespace holdfast::drivers
