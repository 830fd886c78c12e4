#pragma once

namespace holdfast::engine {

/// Whether the calling thread has left a call to the store at its call_limit, since it last said
/// that it has not.
bool& left_a_call() noexcept;

}  // namespace holdfast::engine
