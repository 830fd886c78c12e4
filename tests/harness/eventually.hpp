#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace harness {

/// Waits for a state that another thread or process brings about, and checks every few
/// milliseconds. Throws, with `what`, after `limit`, which is far longer than the state can take on
/// a loaded machine. So the limit decides between "it happened" and "it never will", and never
/// about speed.
void eventually(const std::string& what, const std::function<bool()>& condition,
                std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace harness
