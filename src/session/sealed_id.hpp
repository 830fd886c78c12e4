#pragma once

#include <holdfast/store/command.hpp>

namespace holdfast::engine {

/// The owner id that belongs to a secret: the first half of its SHA-256. The id does not reveal the
/// secret; a process that gets the secret can check that it belongs to the id.
store::owner_id sealed(const store::owner_id& secret) noexcept;

}  // namespace holdfast::engine
