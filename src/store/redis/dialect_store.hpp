#pragma once

#include <holdfast/store/slot_store.hpp>
#include <memory>
#include <string>

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

/// Slots in the layout of other programs, for a lock that is shared with them: the key is the name,
/// as it is (behind ?prefix=, if one is given). Nothing of ours that they do not know is there: no
/// queue, no fence, no hand-over.
result<std::unique_ptr<slot_store>> open_dialect(redis_options options);

}  // namespace holdfast::store::redis
