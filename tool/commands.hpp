#pragma once

#include <functional>
#include <string_view>

#include "tool/log.hpp"
#include "tool/options.hpp"

namespace holdfast::tool {

/// The commands. Each returns the exit code, and throws holdfast::error and failure_exit; run()
/// throws neither, because it also writes down the outcome.
int run(const common_options& common, const run_options& o, log& to);
int hold(const common_options& common, const hold_options& o, log& to);
int try_lock(const common_options& common, const try_options& o, log& to);
int list(const common_options& common, const list_options& o, log& to);
int show(const common_options& common, const show_options& o, log& to);
int force_unlock(const common_options& common, const force_unlock_options& o, log& to);
int limit(const common_options& common, const limit_options& o, log& to);
int meet(const common_options& common, const meet_options& o, log& to);
int top(const common_options& common, const top_options& o, log& to);
int watch(const common_options& common, const watch_options& o, log& to);
int graph(const common_options& common, const graph_options& o, log& to);
int completion(const common_options& common, const completion_options& o, log& to);
int manual(const common_options& common, const manual_options& o, log& to);
int serve(const common_options& common, const serve_options& o, log& to);
int ping(const common_options& common, const ping_options& o, log& to);
int doctor(const common_options& common, const doctor_options& o, log& to);
int scrape(const common_options& common, const scrape_options& o, log& to);
int version(const common_options& common, const version_options& o, log& to);

/// Returns the command's exit code. If the command throws, writes the error to the log and returns
/// the error's code.
int reported(log& to, const std::function<int()>& command);

/// Ends the program without a release: there is nothing left to release, and the answer of a store
/// that is away would take long.
[[noreturn]] void leave_at_once(int code) noexcept;

/// Prints to stdout. Throws failure_exit if stdout cannot be written.
void print(std::string_view text);

}  // namespace holdfast::tool
