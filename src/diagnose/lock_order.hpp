#pragma once

#include <string>

namespace holdfast::engine {

class store_client;

/// Called when the calling thread is about to wait for that name: notes the names that it holds,
/// and notifies the session's observer if these names were taken in another order before.
/// Thread-safe.
void note_lock_order(store_client& session, const std::string& name);

}  // namespace holdfast::engine
