#pragma once

#include <functional>

namespace harness {

/// Starts threads one after the other until one has the std::thread::id of the first, and runs
/// `second` in it. The test fails if the system never reuses the id.
void in_a_thread_of_the_same_id(const std::function<void()>& first,
                                const std::function<void()>& second);

}  // namespace harness
