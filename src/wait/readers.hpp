#pragma once

#include "local/reader_group.hpp"
#include "wait/pending_wait.hpp"

namespace holdfast::engine {

/// Acquires a reader's lease. The readers of a process share one hold, which the first of them
/// requests from the store. With `passes_writers`, a reader joins the hold even if a writer waits.
result<lease> read(const std::shared_ptr<session_impl>& session,
                   const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                   const std::shared_ptr<reader_group>& at, bool passes_writers, wait_time wait,
                   std::stop_token stop);
/// The same without a thread.
pending<lease> async_read(async_request o, std::shared_ptr<reader_group> at, bool passes_writers);
/// Acquires a writer's lease. While it waits, no reader joins the readers of this process.
pending<lease> async_write(async_request o, std::shared_ptr<reader_group> at);

}  // namespace holdfast::engine
