#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/driver.hpp>
#include <string_view>

/// A store's driver over its family, one file each. The static library has all of them
/// (linked.cpp); the shared one has some, and loads the others when a URL asks (load.cpp).
namespace holdfast::drivers {

using opened = result<std::unique_ptr<store::session_store>>;

const store::driver& etcd() noexcept;
const store::driver& mariadb() noexcept;
const store::driver& memcached() noexcept;
const store::driver& memory() noexcept;
const store::driver& postgres() noexcept;
const store::driver& redis() noexcept;
const store::driver& sqlite() noexcept;
const store::driver& zookeeper() noexcept;

/// The driver for URLs with that scheme (in lower case). errc::unsupported if this build lacks it,
/// errc::invalid_argument, with the nearest scheme, if there is none.
result<const store::driver*> find(std::string_view scheme);

}  // namespace holdfast::drivers
