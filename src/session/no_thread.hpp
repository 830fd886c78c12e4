#pragma once

#include <holdfast/error.hpp>
#include <string_view>

namespace holdfast::engine {

/// In a handler of what starting a thread threw: why there is none "to renew leases with". Whatever
/// it was, and without throwing: if there is no memory either, it says that.
failure no_thread(std::string_view purpose) noexcept;

}  // namespace holdfast::engine
