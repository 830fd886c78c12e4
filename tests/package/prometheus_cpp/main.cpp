// What prometheus-cpp writes of the metrics has the same samples as their own text.
#include <prometheus/text_serializer.h>

#include <holdfast/prometheus.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

namespace {

using namespace std::chrono_literals;
using holdfast::event;
using holdfast::event_kind;

/// By the name and the labels. The bound of a bucket is written as a number in one way.
std::map<std::string, double> samples_of(const std::string& text) {
  std::map<std::string, double> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto gap = line.rfind(' ');
    std::string series = line.substr(0, gap);
    if (const auto le = series.find("le=\""); le != series.npos) {
      const double bound = std::stod(series.substr(le + 4));
      series = series.substr(0, le) + std::to_string(bound);
    }
    all[series] = std::stod(line.substr(gap + 1));
  }
  return all;
}

std::shared_ptr<holdfast::metrics> some_metrics() {
  auto counted = std::make_shared<holdfast::metrics>();
  for (const auto kind : {event_kind::acquired, event_kind::busy, event_kind::released,
                          event_kind::lost, event_kind::renewed, event_kind::paused}) {
    event e{.kind = kind, .name = "a \"b\"\n\xff:1", .store = "memory:", .lock_kind = "mutex"};
    e.waited = e.held = e.margin = 40ms;
    counted->on_event(e);
  }
  return counted;
}

}  // namespace

int main() {
  const auto counted = some_metrics();
  const holdfast::prometheus_collectable collectable(counted);
  const auto theirs = samples_of(prometheus::TextSerializer().Serialize(collectable.Collect()));
  const auto ours = samples_of(counted->text(holdfast::metrics_format::prometheus));
  for (const auto& [series, value] : ours) {
    const auto found = theirs.find(series);
    if (found == theirs.end()) {
      std::cerr << "missing: " << series << '\n';
    } else if (found->second != value) {
      std::cerr << series << " is " << found->second << " and not " << value << '\n';
    }
  }
  std::cout << ours.size() << " samples here, " << theirs.size() << " there\n";
  return !ours.empty() && ours == theirs ? 0 : 1;
}
