#pragma once

namespace holdfast::engine {

/// Whether the calling thread has abandoned a store call at its call_limit, since it last set this
/// to false.
bool& left_a_call() noexcept;

}  // namespace holdfast::engine
