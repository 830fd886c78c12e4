#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace harness {

/// Waits for a state that another thread or process brings about, and looks every few milliseconds.
/// Throws, with `what`, after `limit`: far longer than it can take on a loaded machine, so that it
/// decides between "it happened" and "it never will", and never about speed.
void eventually(const std::string& what, const std::function<bool()>& condition,
                std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace harness
