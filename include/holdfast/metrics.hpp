#pragma once

#include <cstddef>
#include <functional>
#include <holdfast/metrics_text.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/store/store.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct metrics_options {
  /// Returns the group of a lock for the label `group`, given its name. (Names are not labels,
  /// because there may be millions of them.) If empty, the group is the part of the name before the
  /// first ':' or '/'. Called for each event; the returned view must live as long as the name.
  std::function<std::string_view(std::string_view name)> group{};
  /// Names and groups that always have a group of their own, in spite of the limit.
  std::vector<std::string> always{};
  /// How many other groups there may be. Further groups are counted as `other`.
  std::size_t max_groups = 64;
};

/// Counts the events of a program's sessions, and writes the counts as the text that Prometheus
/// reads:
///
///   const auto counted = std::make_shared<holdfast::metrics>();
///   auto session = holdfast::open(url, {.observer = counted, .decorate = counted->timer()});
///   …                                            // at GET /metrics:
///   answer(content_type(format), counted->text(format));
///
/// One object serves all sessions of a program. docs/monitoring.md lists the metrics. Thread-safe;
/// an event of a lock that was counted before costs a few atomic additions and takes no mutex. No
/// round trips. Memory: about 4 KiB for each store, kind and group.
class metrics final : public observer {
 public:
  explicit metrics(metrics_options options = {});
  ~metrics() override;

  void on_event(const event& what) override;

  /// For session_options::decorate: each operation at the store is timed, and its failures are
  /// counted. May outlive this object.
  std::function<std::unique_ptr<store::session_store>(std::unique_ptr<store::session_store>)>
  timer() const;

  /// Makes the series of a group, and those of its store, appear at zero before their first event.
  /// `lock_kind` as in name_info::kind: "mutex".
  void preregister(std::string_view store_url, std::string_view lock_kind, std::string_view group);

  /// The text for Prometheus.
  std::string text(metrics_format format = metrics_format::openmetrics) const;
  /// The same for another metrics library: passes all families and samples to `to`.
  void write(metrics_sink& to) const;

 private:
  struct state;
  const std::shared_ptr<state> state_;
};

}  // namespace holdfast
