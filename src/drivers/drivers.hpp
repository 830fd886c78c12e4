#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/driver.hpp>
#include <string_view>

/// The drivers of the stores, each joined to its family in a file of its own. The static library
/// contains all of them (linked.cpp); the shared library contains some, and loads the others when a
/// URL needs them (load.cpp).
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

/// The driver for URLs with that scheme (in lower case). Fails with errc::unsupported if this build
/// lacks the driver; with errc::invalid_argument, which names the nearest scheme, if the scheme is
/// unknown.
result<const store::driver*> find(std::string_view scheme);

}  // namespace holdfast::drivers
