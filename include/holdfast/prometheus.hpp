#pragma once

#include <holdfast/metrics.hpp>

#if !__has_include(<prometheus/collectable.h>)
#error "holdfast/prometheus.hpp needs prometheus-cpp (Debian: prometheus-cpp-dev)"
#endif

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// The metrics for a program that exposes its own with prometheus-cpp. The only header that needs
/// prometheus-cpp; in CMake, link holdfast::prometheus.
namespace holdfast {

namespace detail {

class prometheus_families final : public metrics_sink {
 public:
  void family(std::string_view name, metric_type type, std::string_view help) override {
    std::string shown(name);
    if (type == metric_type::counter) shown += "_total";
    if (type == metric_type::info) shown += "_info";
    families_.push_back({std::move(shown), std::string(help), type_of(type), {}});
  }
  void sample(labels at, double value) override {
    auto& one = add(at);
    if (families_.back().type == prometheus::MetricType::Counter) {
      one.counter.value = value;
    } else {
      one.gauge.value = value;
    }
  }
  void histogram(labels at, std::span<const std::chrono::nanoseconds> bounds,
                 std::span<const std::uint64_t> counts, std::chrono::nanoseconds sum) override {
    auto& to = add(at).histogram;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      to.sample_count += counts[i];
      to.bucket.push_back({to.sample_count, i < bounds.size()
                                                ? seconds(bounds[i])
                                                : std::numeric_limits<double>::infinity()});
    }
    to.sample_sum = seconds(sum);
  }
  std::vector<prometheus::MetricFamily> take() && { return std::move(families_); }

 private:
  static double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  }
  static prometheus::MetricType type_of(metric_type type) {
    if (type == metric_type::counter) return prometheus::MetricType::Counter;
    if (type == metric_type::histogram) return prometheus::MetricType::Histogram;
    return prometheus::MetricType::Gauge;
  }
  prometheus::ClientMetric& add(labels at) {
    auto& one = families_.back().metric.emplace_back();
    for (const auto& [key, text] : at) one.label.push_back({std::string(key), as_utf8(text)});
    return one;
  }
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace detail

/// For prometheus::Exposer::RegisterCollectable(), which keeps a weak reference:
///
///   const auto collectable = std::make_shared<holdfast::prometheus_collectable>(counted);
///   exposer.RegisterCollectable(collectable);
class prometheus_collectable final : public prometheus::Collectable {
 public:
  explicit prometheus_collectable(std::shared_ptr<const metrics> of) : of_(std::move(of)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    detail::prometheus_families all;
    of_->write(all);
    return std::move(all).take();
  }

 private:
  const std::shared_ptr<const metrics> of_;
};

}  // namespace holdfast
