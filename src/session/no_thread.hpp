#pragma once

#include <holdfast/error.hpp>
#include <string_view>

namespace holdfast::engine {

/// In a handler of what starting a thread threw: why there is none "to renew leases with". If there
/// was no memory for it, or is none for that text, it says that. Nothing has been begun.
failure no_thread(std::string_view purpose) noexcept;

}  // namespace holdfast::engine
