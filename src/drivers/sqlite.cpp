#include "store/sqlite/sqlite.hpp"

#include "drivers/join.hpp"
#include "store/sqlite/database_path.hpp"

namespace holdfast::drivers {

namespace {

result<store::sqlite::sqlite_options> with_one_url(const base::store_url& u) {
  auto options = store::sqlite::read_options(u);
  if (options) options->url = store::sqlite::shown_url(options->path);
  return options;
}

}  // namespace

const store::driver& sqlite() noexcept {
  static constexpr store::driver all{"sqlite",
                                     open_over_family<with_one_url, store::sqlite::open_sqlite>};
  return all;
}

}  // namespace holdfast::drivers
