#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/store_url.hpp"
#include "drivers/drivers.hpp"
#include "family/contender_family.hpp"
#include "family/slot_family.hpp"
#include "family/state_family.hpp"

/// What the drivers' files have in common: the URL's options, and the family over the port.
namespace holdfast::drivers {

/// The store's options from the URL, with the session's clock.
template <auto read_options>
auto options_of(const store::opening& how) -> decltype(read_options(base::store_url{})) {
  auto u = base::parse_url(how.url);
  if (!u) return std::move(u.error());
  auto options = read_options(*u);
  if (options) options->clock = &how.clock;
  return options;
}

template <class Port>
opened over(result<std::unique_ptr<Port>> port, clock& on) {
  if (!port) return std::move(port.error());
  if constexpr (requires { family::over(std::move(*port), on); }) {
    return family::over(std::move(*port), on);
  } else {
    return family::over(std::move(*port));
  }
}

/// A failure to open a store names it as session::url() would, so that it has the same name in this
/// failure as in later ones.
inline opened named(const std::string& url, opened store) {
  if (!store) store.error().store = url;
  return store;
}

/// The driver of a store that can be opened in one way.
template <auto read_options, auto open_port>
opened open_over_family(const store::opening& how) {
  auto options = options_of<read_options>(how);
  if (!options) return std::move(options.error());
  const std::string url = options->url;
  return named(url, over(open_port(std::move(*options)), how.clock));
}

/// The driver of a server with locks of its own, which are used instead of rows if the URL has
/// ?mode=session.
template <auto read_options, auto open_rows, auto open_locks>
opened open_rows_or_locks(const store::opening& how) {
  auto options = options_of<read_options>(how);
  if (!options) return std::move(options.error());
  const std::string url = options->url;
  if (options->session_mode) return named(url, open_locks(std::move(*options)));
  return named(url, over(open_rows(std::move(*options)), how.clock));
}

}  // namespace holdfast::drivers
