#pragma once

#include <holdfast/store/slot_store.hpp>
#include <memory>
#include <string>

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

/// Slots in the layout of other programs, for a lock that is shared with them. The key is the
/// unchanged name (behind ?prefix=, if given). It has no holdfast extension that those programs do
/// not know: no queue, no fence, no hand-over.
result<std::unique_ptr<slot_store>> open_dialect(redis_options options);

}  // namespace holdfast::store::redis
