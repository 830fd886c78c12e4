#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "tool/fd.hpp"
#include "tool/log.hpp"
#include "tool/options.hpp"

namespace holdfast::tool {

struct opened_store {
  holdfast::session session;
  std::string url;  ///< as people see it (url_for_people)
};

/// Opens the store of --store, otherwise of $HOLDFAST_STORE, otherwise the default one; on a
/// terminal, and with -v, a message names the default store once. Events of its leases go to the
/// log. Refuses a store that no other process sees. Throws holdfast::error, failure_exit.
opened_store open_store(const common_options& how, log& to);

/// The same for a command that creates no database: if the database that a URL names does not
/// exist, that is a failure (errc::unavailable), because its path may be wrong. The default store
/// is created, because its path cannot be misspelt.
opened_store open_existing(const common_options& how, log& to);

/// The same with the caller's own observer and decorator.
opened_store open_existing(const common_options& how, log& to, const session_options& options);

/// The same for a command that only reads: a file that this user may not write to is opened with
/// ?access=read.
opened_store open_to_read(const common_options& how, log& to);

/// Whether the store is a database that does not exist, also the default one.
bool lacks_database(const common_options& how);

/// The same for a command that waits until `deadline`: it also waits, with a message, for a store
/// that is not up yet. Without a deadline it waits for as long as a session keeps trying.
opened_store open_store(const common_options& how, log& to, boot_time deadline);

/// The same; `also` gets the same events as the log.
opened_store open_store(const common_options& how, log& to, boot_time deadline,
                        std::shared_ptr<observer> also);

/// The same with the caller's own observer and decorator.
opened_store open_store(const common_options& how, log& to, boot_time deadline,
                        const session_options& options);

/// The URL of that store as it was given, with its secrets.
std::string given_store(const common_options& how);

/// The URL of that store as people see it, whether or not it answers.
std::string shown_store(const common_options& how);

/// session::url() of that store, even if the store was away when it was opened: the label `store`
/// of metrics, as in the program's own metrics.
std::string label_of(const common_options& how, const error& failed_to_open);

/// session::show() for a command of another name: a name that no lock can have is reported as that
/// command's failure.
name_info look_at(const session& s, std::string_view command, const std::string& name);

/// The rest of a wait until `deadline`: at least one try.
wait_time time_left(boot_time deadline);

/// How a command that we start finds the same store.
struct store_for_child {
  std::string url;  ///< for HOLDFAST_STORE
  unique_fd file;   ///< the target of a `file:` URL: keep it open for as long as it may be read
};

/// A URL from $HOLDFAST_STORE is passed on unchanged; a typed one is in the environment only if it
/// has no secret. Otherwise the command gets `file:/proc/PID/fd/N`: a file in our memory, which
/// only this user can read. Throws std::system_error.
store_for_child pass_on(const common_options& how);

}  // namespace holdfast::tool
