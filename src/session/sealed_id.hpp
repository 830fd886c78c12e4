#pragma once

#include <holdfast/store/command.hpp>

namespace holdfast::engine {

/// The owner id that belongs to a secret: the first half of its SHA-256. Nobody who reads the id
/// can tell the secret; a process that gets the secret can check that it is the one.
store::owner_id sealed(const store::owner_id& secret) noexcept;

}  // namespace holdfast::engine
