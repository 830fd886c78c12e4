#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/listed_name.hpp"
#include "tool/open_store.hpp"
#include "tool/output_file.hpp"
#include "tool/stopwatch.hpp"
#include "tool/store_metrics.hpp"
#include "tool/store_url.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

constexpr std::string_view of_nobody = "holdfast-ping";

/// What is away is a state to be shown, too: an alert is made of it.
snapshot snapshot_of(const common_options& common, log& to) {
  const stopwatch watch;
  session_options options;
  options.decorate = watch.decorator();
  try {
    const auto [s, url] = open_store(common, to, boot_clock::now(), options);
    (void)s.show(of_nobody);
    const auto round_trip = watch.take().value_or(std::chrono::nanoseconds{0});
    auto found = look_at_store(s, url);
    found.health.round_trip = round_trip;
    return found;
  } catch (const error& e) {
    if (!e.retryable()) throw;
    to.write(level::error, "unavailable", unsigned_message(e.what()));
    return {.store = shown_store(common)};
  }
}

}  // namespace

int scrape(const common_options& common, const scrape_options& o, log& to) {
  const snapshot found = snapshot_of(common, to);
  const auto text = store_metrics({&found, 1}, std::chrono::system_clock::now(), o.format);
  if (o.output.empty()) {
    print(text);
  } else if (const std::string why = replace_file(o.output, text); !why.empty()) {
    throw failure_exit(exit_code::own_failure,
                       "metrics: cannot write " + printable(o.output) + ": " + why);
  }
  return found.health.reachable ? reading_code(found.names) : exit_code::unavailable;
}

}  // namespace holdfast::tool
