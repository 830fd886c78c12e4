#pragma once

#include <functional>

namespace harness {

/// Threads one after the other, until one has the std::thread::id of one before: then `second` runs
/// in it. Says so if the system never gives one again.
void in_a_thread_of_the_same_id(const std::function<void()>& first,
                                const std::function<void()>& second);

}  // namespace harness
