#pragma once

#include <holdfast/cpp20.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

/// The two texts that Prometheus reads.
enum class metrics_format {
  openmetrics,  ///< application/openmetrics-text; version=1.0.0
  prometheus,   ///< text/plain; version=0.0.4: node_exporter's textfile collector reads only this
};
/// For the header Content-Type of an answer over HTTP.
std::string_view content_type(metrics_format format) noexcept;

enum class metric_type { counter, gauge, histogram, info };

/// Writes families of metrics and their samples. The caller must choose valid names and label keys;
/// label values and help may be any text. For one thread.
class metrics_text {
 public:
  using labels = std::span<const std::pair<std::string_view, std::string_view>>;
  /// The same as a list in braces, for the length of a call.
  using label_list = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  explicit metrics_text(metrics_format format) : format_(format) {}

  /// Begins a family, to which the following samples belong. `name` is without the suffixes that
  /// the format adds (`_total`, `_info`); a name that ends with `_seconds` has that unit.
  void family(std::string_view name, metric_type type, std::string_view help);
  /// Writes a sample of a counter, gauge or info.
  void sample(labels at, double value);
  void sample(label_list at, double value) { sample(labels(at.begin(), at.size()), value); }
  /// Writes a histogram in seconds. `counts` has one element more than `bounds`, for all values
  /// above the last bound.
  void histogram(labels at, std::span<const std::chrono::nanoseconds> bounds,
                 std::span<const std::uint64_t> counts, std::chrono::nanoseconds sum);

  /// The whole text. Nothing may be added after it.
  std::string finish() &&;

 private:
  void line(std::string_view suffix, labels at, std::string_view le, double value);

  const metrics_format format_;
  metric_type type_ = metric_type::gauge;
  std::string name_;
  std::string text_;
};

}  // namespace holdfast
