#include "tool/open_store.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tool/default_store.hpp"
#include "tool/failure.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

std::string reason_of(const event& e) {
  if (!e.detail.empty()) return printable(e.detail);
  return e.code ? e.code.message() : "no answer so far";
}

/// Logs the library's events that the command should not hide.
class log_observer final : public observer {
 public:
  explicit log_observer(log& to) : log_(to) {}

  void on_event(const event& e) override {
    const std::string name = printable(e.name);
    const std::string why = reason_of(e);
    switch (e.kind) {
      case event_kind::suspect:
        return log_.write(level::warning, "suspect", name + ": the lease is not renewed: " + why);
      case event_kind::held_again:
        return log_.write(level::warning, "held_again", name + ": the lease is renewed again");
      case event_kind::lost:
        return log_.write(level::error, "lost", name + ": the lock is lost: " + why);
      case event_kind::renew_failed:
        return log_.write(level::detail, "renew_failed", name + ": renewal failed: " + why);
      case event_kind::warning:
        return log_.write(level::warning,
                          e.code == errc::unavailable ? "waiting_for_store" : "warning", why);
      case event_kind::misuse:
        return log_.write(level::warning, "misuse", name + ": " + why);
      case event_kind::release_failed:
        return log_.write(
            level::warning, "release_failed",
            name + ": could not give the lock back; its lease ends by itself: " + why);
      case event_kind::lock_order:
      case event_kind::deadlock:
        return log_.write(level::warning, std::string(to_string(e.kind)), name + ": " + why);
      case event_kind::acquired:  // the command reports these itself, with more details
      case event_kind::released:
      case event_kind::gave_up:
      case event_kind::busy:
      case event_kind::renewed:
      case event_kind::paused:  // what they cause is reported, if they cause something
      case event_kind::notification_gap:
        return;
    }
  }

 private:
  log& log_;
};

session_options options_for(log& to) {
  session_options o;
  o.observer = std::make_shared<log_observer>(to);
  return o;
}

/// A server that starts together with us (at boot, in containers) is away for a moment.
session_options waiting_until(boot_time until, session_options o) {
  o.store_timeout = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(until - boot_clock::now(), boot_clock::duration::zero()));
  return o;
}

enum class makes { database, nothing };

bool is_missing(const std::string& store_url) {
  const auto file = database_of(store_url);
  std::error_code ignored;
  return file && !std::filesystem::exists(*file, ignored);
}

std::string to_be_read(const std::string& store_url) {
  if (store_url.find('?') == store_url.npos) return store_url + "?access=read";
  const bool has_others = !store_url.ends_with('?') && !store_url.ends_with('&');
  return store_url + (has_others ? "&" : "") + "access=read";
}

/// The library creates no database that is opened for reading, and reports if there is none.
std::string without_making(const std::string& url) {
  const std::string of_store = url_of_store(url);
  return is_missing(of_store) ? to_be_read(of_store) : url;
}

opened_store open_at(const std::string& url, boot_time until, const session_options& options,
                     makes what) {
  const std::string adapted = what == makes::nothing ? without_making(url) : url;
  opened_store made{open(adapted, waiting_until(until, options)), url_for_people(url)};
  if (!made.session.can().several_processes)
    throw failure_exit(exit_code::config,
                       "the store " + made.url +
                           " exists inside one process only, so no other program could see this "
                           "lock; name a store that all programs can reach, as sqlite:PATH");
  return made;
}

const char* from_environment() {
  const char* url = std::getenv("HOLDFAST_STORE");
  return url && *url ? url : nullptr;
}

opened_store open_from_environment(const char* url, boot_time until, const session_options& options,
                                   makes what) {
  try {
    return open_at(url, until, options, what);
  } catch (const error& e) {
    // The URL was not typed: the configuration is wrong.
    if (e.reason() != errc::invalid_argument) throw;
    throw failure_exit(exit_code::config,
                       "$HOLDFAST_STORE: " + std::string(unsigned_message(e.what())));
  }
}

/// Once, although some commands open a store again and again.
void warn_of_typed_secret(log& to) {
  static std::once_flag warned;
  std::call_once(warned, [&] {
    to.write(
        level::warning, "password",
        "the URL on the command line has a password, or a part that may be one: other users may "
        "have seen it before holdfast removed it; pass the URL in $HOLDFAST_STORE, which they "
        "cannot see");
  });
}

opened_store open_as(const common_options& how, log& to, boot_time deadline,
                     const session_options& options, makes what) {
  const boot_time until = deadline == forever
                              ? saturated_add(boot_clock::now(), session_options{}.store_timeout)
                              : deadline;
  if (!how.store.empty()) {
    if (!secrets_in(how.store).empty()) warn_of_typed_secret(to);
    return open_at(how.store, until, options, what);
  }
  if (const char* url = from_environment()) return open_from_environment(url, until, options, what);
  default_store found = find_default_store();
  // Cron would mail it.
  if (is_to_be_told(found, how.verbose || ::isatty(STDERR_FILENO) == 1))
    to.write(level::warning, "default_store",
             "no --store and no $HOLDFAST_STORE: locks are kept in " + found.url +
                 ", for this user on this machine (this warning comes only once)",
             {{"store", found.url}});
  static unique_fd in_use;  // until the program ends, as the locks are
  in_use = std::move(found.in_use);
  return open_at(found.url, until, options, makes::database);
}

}  // namespace

name_info look_at(const session& s, std::string_view command, const std::string& name) try {
  return s.show(name);
} catch (const error& e) {
  if (e.reason() != errc::invalid_name) throw;
  const std::string_view said = unsigned_message(e.what());
  throw failure_exit(exit_code::of(e.reason()),
                     std::string(command) + std::string(said.substr(e.operation().size())));
}

wait_time time_left(boot_time deadline) {
  return deadline == forever ? no_limit : std::max(deadline - boot_clock::now(), one_try);
}

opened_store open_store(const common_options& how, log& to) {
  return open_store(how, to, boot_clock::now());
}

opened_store open_to_read(const common_options& how, log& to) {
  try {
    return open_existing(how, to);
  } catch (const error& e) {
    const std::string url = url_of_store(given_store(how));
    const bool lacks_rights = e.reason() == errc::read_only || e.reason() == errc::not_permitted;
    if (!lacks_rights || !database_of(url)) throw;
    try {
      return {open(to_be_read(url), options_for(to)), shown_store(how)};
    } catch (const error&) {  // the first failure names what is missing
    }
    throw;
  }
}

opened_store open_store(const common_options& how, log& to, boot_time deadline) {
  return open_store(how, to, deadline, options_for(to));
}

opened_store open_store(const common_options& how, log& to, boot_time deadline,
                        std::shared_ptr<observer> also) {
  session_options both = options_for(to);
  both.observer = std::make_shared<observers>(
      std::vector<std::shared_ptr<observer>>{both.observer, std::move(also)});
  return open_store(how, to, deadline, both);
}

opened_store open_store(const common_options& how, log& to, boot_time deadline,
                        const session_options& options) {
  return open_as(how, to, deadline, options, makes::database);
}

opened_store open_existing(const common_options& how, log& to) {
  return open_existing(how, to, options_for(to));
}

opened_store open_existing(const common_options& how, log& to, const session_options& options) {
  return open_as(how, to, boot_clock::now(), options, makes::nothing);
}

bool lacks_database(const common_options& how) {
  return is_missing(url_of_store(given_store(how)));
}

std::string given_store(const common_options& how) {
  if (!how.store.empty()) return how.store;
  const char* const url = from_environment();
  return url ? url : default_url(default_folder());
}

std::string shown_store(const common_options& how) { return url_for_people(given_store(how)); }

std::string label_of(const common_options& how, const error& failed_to_open) {
  const std::string& url = failed_to_open.store();
  return url.empty() ? shown_store(how) : url;
}

store_for_child pass_on(const common_options& how) {
  const std::string given = given_store(how);
  if (secrets_in(given).empty()) return {url_for_others(given), {}};
  if (how.store.empty()) return {given, {}};
  unique_fd file{::memfd_create("holdfast-store", MFD_CLOEXEC)};
  if (!file || ::fchmod(file.get(), 0400) != 0 || !write_all(file.get(), how.store + '\n'))
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  const std::string path =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get());
  return {"file:" + path, std::move(file)};
}

}  // namespace holdfast::tool
