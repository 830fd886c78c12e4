#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/listed_name.hpp"
#include "tool/open_store.hpp"
#include "tool/output_file.hpp"
#include "tool/stopwatch.hpp"
#include "tool/store_metrics.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

/// The metrics, and the exit code.
struct scraped {
  snapshot found;
  int code;
};

/// A store that is away, or refuses this user, is a state to show, too: alerts depend on it.
scraped look(const common_options& common, log& to) {
  const stopwatch watch;
  session_options options;
  options.decorate = watch.decorator();
  try {
    const session s = open_existing(common, to, options).session;
    (void)s.show(of_nobody);
    const auto round_trip = watch.take().value_or(std::chrono::nanoseconds{0});
    auto found = look_at_store(s);
    found.health.round_trip = round_trip;
    if (!found.health.note.empty())
      to.write(level::warning, "unlisted",
               "the store answers, but its names are not counted: " + found.health.note);
    const int code = reading_code(found.names);
    return {std::move(found), code};
  } catch (const error& e) {
    if (e.reason() == errc::invalid_argument) throw;  // of the command line
    const int code = e.retryable() ? exit_code::unavailable : exit_code::of(e.reason());
    to.write(level::error, e.retryable() ? "unavailable" : "failed", unsigned_message(e.what()),
             {{"exit_code", static_cast<std::int64_t>(code)}});
    return {{.store = label_of(common, e)}, code};
  }
}

}  // namespace

int scrape(const common_options& common, const scrape_options& o, log& to) {
  const auto [found, code] = look(common, to);
  const auto text = store_metrics({&found, 1}, std::chrono::system_clock::now(), o.format);
  if (o.output.empty()) {
    print(text);
  } else if (const std::string why = replace_file(o.output, text); !why.empty()) {
    throw failure_exit(exit_code::own_failure,
                       "metrics: cannot write " + printable(o.output) + ": " + why);
  }
  return code;
}

}  // namespace holdfast::tool
