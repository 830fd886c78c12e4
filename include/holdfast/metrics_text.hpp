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

/// The text as UTF-8: other bytes are replaced, because Prometheus would refuse the whole page.
std::string as_utf8(std::string_view text);

enum class metric_type { counter, gauge, histogram, info };

/// Receives families of metrics and their samples. Names and label keys are valid; label values and
/// help may be any text. For one thread.
class metrics_sink {
 public:
  using labels = std::span<const std::pair<std::string_view, std::string_view>>;
  /// The same as a list in braces, for the length of a call.
  using label_list = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  virtual ~metrics_sink() = default;

  /// Begins a family, to which the following samples belong. `name` is without the suffixes that
  /// the formats add (`_total`, `_info`); a name that ends with `_seconds` has that unit.
  virtual void family(std::string_view name, metric_type type, std::string_view help) = 0;
  /// A sample of a counter, gauge or info.
  virtual void sample(labels at, double value) = 0;
  void sample(label_list at, double value) { sample(labels(at.begin(), at.size()), value); }
  /// A histogram in seconds. `counts` has one element more than `bounds`, for all values above the
  /// last bound.
  virtual void histogram(labels at, std::span<const std::chrono::nanoseconds> bounds,
                         std::span<const std::uint64_t> counts, std::chrono::nanoseconds sum) = 0;
};

/// Writes families and samples as text.
class metrics_text final : public metrics_sink {
 public:
  explicit metrics_text(metrics_format format) : format_(format) {}

  void family(std::string_view name, metric_type type, std::string_view help) override;
  void sample(labels at, double value) override;
  using metrics_sink::sample;
  void histogram(labels at, std::span<const std::chrono::nanoseconds> bounds,
                 std::span<const std::uint64_t> counts, std::chrono::nanoseconds sum) override;

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
