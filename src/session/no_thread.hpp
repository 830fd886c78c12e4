#pragma once

#include <holdfast/error.hpp>
#include <string_view>

namespace holdfast::engine {

/// To be called in the handler of an exception from starting a thread: explains why there is none,
/// as in "no thread to renew leases with". If memory was lacking for the thread, or is lacking for
/// that text, says so. Nothing has been begun.
failure no_thread(std::string_view purpose) noexcept;

}  // namespace holdfast::engine
