#include "tool/open_store.hpp"

#include <cstdlib>
#include <memory>
#include <string>

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

/// What the library sees and the command should not hide.
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
        return log_.write(level::warning, "warning", why);
      case event_kind::misuse:
        return log_.write(level::warning, "misuse", name + ": " + why);
      case event_kind::lock_order:
      case event_kind::deadlock:
        return log_.write(level::warning, std::string(to_string(e.kind)), name + ": " + why);
      case event_kind::acquired:  // the command says these itself, with more to tell
      case event_kind::released:
      case event_kind::gave_up:
      case event_kind::release_failed:
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

opened_store open_at(const std::string& url, log& to) {
  return {open(url, options_for(to)), url_for_others(url)};
}

opened_store open_from_environment(const char* url, log& to) {
  try {
    return open_at(url, to);
  } catch (const error& e) {
    // Nobody typed it: it is the configuration that is wrong.
    if (e.reason() != errc::invalid_argument) throw;
    throw failure_exit(exit_code::config, std::string("$HOLDFAST_STORE: ") + e.what());
  }
}

}  // namespace

opened_store open_store(const common_options& how, log& to) {
  if (!how.store.empty()) {
    if (!password_in(how.store).empty())
      to.write(level::warning, "password",
               "others may have seen the password in --store before it was blanked; "
               "$HOLDFAST_STORE is not shown to them");
    return open_at(how.store, to);
  }
  if (const char* url = std::getenv("HOLDFAST_STORE"); url && *url)
    return open_from_environment(url, to);
  const default_store found = find_default_store();
  if (found.first_time)
    to.write(level::warning, "default_store",
             "no --store and no $HOLDFAST_STORE: locks are kept in " + found.url +
                 ", for this user on this machine (said once)",
             {{"store", found.url}});
  return open_at(found.url, to);
}

}  // namespace holdfast::tool
