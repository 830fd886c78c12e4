#pragma once

#include <holdfast/store/slot_store.hpp>
#include <memory>

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

/// Slots in the layout of other programs, for a lock that is shared with them: the key is the name,
/// as it is (behind ?prefix=, if one is given). Nothing of ours that they do not know is there: no
/// queue, no fence, no hand-over.
result<std::unique_ptr<slot_store>> open_dialect(redis_options options);

/// The channel on which Redisson says that a lock was given back.
std::string unlock_channel(std::string_view key);

/// How an owner of ours is written in Redisson's hash, and back: `id:thread`.
std::string redisson_owner(const owner_id& id);
bool parse_redisson_owner(std::string_view text, owner_id& id) noexcept;

}  // namespace holdfast::store::redis
