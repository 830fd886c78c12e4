#pragma once

#include "engine/pending_wait.hpp"
#include "engine/reader_group.hpp"

namespace holdfast::engine {

/// reader_group::enter() without a thread. `passes_writers` as there.
pending<lease> async_read(order o, const claim& c, std::shared_ptr<reader_group> at,
                          bool passes_writers);
/// Nobody joins the readers of this process while it waits.
pending<lease> async_write(order o, const claim& c, std::shared_ptr<reader_group> at);

}  // namespace holdfast::engine
