#pragma once

#include "engine/pending_wait.hpp"
#include "engine/reader_group.hpp"

namespace holdfast::engine {

/// A reader's lease: it shares the hold of its process, and the first asks for all.
/// `passes_writers`: it joins also if a writer waits.
result<lease> read(const std::shared_ptr<core>& session, const std::shared_ptr<const spec>& s,
                   const claim& c, const std::shared_ptr<reader_group>& at, bool passes_writers,
                   wait_time wait, std::stop_token stop);
/// The same without a thread.
pending<lease> async_read(order o, const claim& c, std::shared_ptr<reader_group> at,
                          bool passes_writers);
/// Nobody joins the readers of this process while it waits.
pending<lease> async_write(order o, const claim& c, std::shared_ptr<reader_group> at);

}  // namespace holdfast::engine
