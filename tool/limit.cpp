#include <stop_token>

#include "tool/commands.hpp"
#include "tool/duration.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/signals.hpp"
#include "tool/text.hpp"
#include "tool/waiting.hpp"

namespace holdfast::tool {

namespace {

rate_decision decide(rate_limiter& l, const limit_options& o, std::stop_token stop) {
  const rate_key key = o.key.empty() ? rate_key{} : rate_key{{.part = "key", .value = o.key}};
  if (o.peek) return l.peek(o.tokens, key);
  if (!o.refund) return l.take_for(o.tokens, o.wait, key, std::move(stop));
  l.refund(o.tokens, key);
  return l.peek(1, key);
}

std::string for_people(const limit_options& o, const rate_decision& d, std::string_view outcome) {
  std::string line = printable(o.name) + ": " + std::string(outcome);
  if (d.rules.empty()) return line + '\n';
  const auto& nearest = d.tightest();
  line +=
      ", " + std::to_string(nearest.remaining) + " of " + std::to_string(nearest.limit) + " left";
  if (outcome == "refused") line += ", again in " + format_duration(d.wait);
  return line + '\n';
}

}  // namespace

int limit(const common_options& common, const limit_options& o, log& to) {
  const signal_inbox signals;
  rate_decision d;
  std::string url;
  int stopped_by = 0;
  {
    waiting room{signals, to, o.name};
    const opened_store s = open_store(common, to);
    url = s.url;
    room.in_line_at(s.session);
    rate_limiter l{s.session, o.name, o.rules};
    d = decide(l, o, room.stop());
    stopped_by = room.stopped_by();
  }
  if (stopped_by != 0) return exit_code::of_signal(stopped_by);
  const std::string_view outcome = o.refund ? "refunded"
                                   : d      ? (o.peek ? "free" : "taken")
                                            : "refused";
  print(common.json ? limit_json(o.name, url, outcome, d) : for_people(o, d, outcome));
  return d || o.refund ? exit_code::ok : o.busy_code;
}

}  // namespace holdfast::tool
