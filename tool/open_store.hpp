#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <string>

#include "tool/fd.hpp"
#include "tool/log.hpp"
#include "tool/options.hpp"

namespace holdfast::tool {

struct opened_store {
  holdfast::session session;
  std::string url;  ///< as people see it (url_for_people)
};

/// The store of --store, else of $HOLDFAST_STORE, else the default one: on a terminal, and with -v,
/// that is told once.
/// What happens to its leases goes to the log. Refuses a store that no other process sees. Throws
/// holdfast::error, failure_exit.
opened_store open_store(const common_options& how, log& to);

/// The same for a command that makes no database: one that a URL names, and that is not there, is a
/// failure (errc::unavailable), because its path may be wrong. The default store is made, because
/// nobody can have misspelt it.
opened_store open_existing(const common_options& how, log& to);

/// The same with the caller's own observer and decorator.
opened_store open_existing(const common_options& how, log& to, const session_options& options);

/// The same for a command that only reads: a file that this user may not write to is opened with
/// ?access=read.
opened_store open_to_read(const common_options& how, log& to);

/// Whether the store is a database that is not there, also the default one.
bool lacks_database(const common_options& how);

/// The same for a command that waits until `deadline`: it waits for a store that is not up yet,
/// too, and says so. Without a deadline for as long as a session keeps trying.
opened_store open_store(const common_options& how, log& to, boot_time deadline);

/// The same, and `also` hears what the log does.
opened_store open_store(const common_options& how, log& to, boot_time deadline,
                        std::shared_ptr<observer> also);

/// The same with the caller's own observer and decorator.
opened_store open_store(const common_options& how, log& to, boot_time deadline,
                        const session_options& options);

/// The URL of that store as it was given, with its secrets.
std::string given_store(const common_options& how);

/// The URL of that store as people see it, whether or not it answers.
std::string shown_store(const common_options& how);

/// What session::url() says of that store, also if the store was away when it was opened: the label
/// `store` of metrics, as the program's own metrics have it.
std::string label_of(const common_options& how, const error& failed_to_open);

/// What is left of a wait until `deadline`: at least one try.
wait_time time_left(boot_time deadline);

/// How a command that we start finds the same store.
struct store_for_child {
  std::string url;  ///< for HOLDFAST_STORE
  unique_fd file;   ///< what a `file:` URL names: to be kept open for as long as it may be read
};

/// A URL from $HOLDFAST_STORE goes on as it came; one that was typed is in the environment only if
/// it has no secret. Else the command gets `file:/proc/PID/fd/N`: a file in our memory, which only
/// this user can read. Throws std::system_error.
store_for_child pass_on(const common_options& how);

}  // namespace holdfast::tool
