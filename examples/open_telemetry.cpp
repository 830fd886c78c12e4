// Locks in traces: a span for each acquisition, and events on the span that a thread is in. The
// example has a tracer of its own, with the few functions of OpenTelemetry's that it needs
// (docs/monitoring.md says which they are), so that it compiles without that library.
#include <chrono>
#include <cstdint>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using attributes = std::map<std::string, std::string>;

/// Stands for opentelemetry::trace::Tracer.
struct tracer {
  /// StartSpan(name, attributes, {.start_system_time}) and End()
  void span(std::string name, std::chrono::system_clock::time_point from, const attributes& of) {
    const std::lock_guard guard{mutex};
    spans.push_back(std::move(name) + ' ' + of.at("lock.group"));
    starts.push_back(from);
  }
  /// GetCurrentSpan()->AddEvent(name, attributes)
  void event(const std::string& name, const attributes& of) {
    const std::lock_guard guard{mutex};
    events.push_back(name + ' ' + of.at("lock.group"));
  }
  std::mutex mutex;
  std::vector<std::string> spans, events;
  std::vector<std::chrono::system_clock::time_point> starts;
};

// #region telemetry
/// Names are not attributes: there may be millions of them.
class traces final : public holdfast::observer {
 public:
  explicit traces(tracer& to) : to_(to) {}

  void on_event(const holdfast::event& e) override {
    using kind = holdfast::event_kind;
    if (e.kind == kind::acquired || e.kind == kind::busy || e.kind == kind::gave_up) {
      const auto began = std::chrono::system_clock::now() -
                         std::chrono::duration_cast<std::chrono::microseconds>(e.waited);
      return to_.span("holdfast.acquire", began, about(e));
    }
    if (e.kind == kind::released || e.kind == kind::renewed) return;
    to_.event("holdfast." + std::string(to_string(e.kind)), about(e));
  }

 private:
  static attributes about(const holdfast::event& e) {
    attributes all{{"lock.store", std::string(e.store)},
                   {"lock.kind", std::string(e.lock_kind)},
                   {"lock.group", std::string(e.name.substr(0, e.name.find(':')))},
                   {"lock.result", std::string(to_string(e.kind))}};
    if (e.fence != 0) all.emplace("lock.fence", std::to_string(e.fence));
    if (e.code) all.emplace("error.type", e.code.message());
    return all;
  }
  tracer& to_;
};
// #endregion

int main() {
  tracer collected;
  const auto session = holdfast::open("memory:", {.observer = std::make_shared<traces>(collected)});
  holdfast::mutex order{session, "order:1000"};
  holdfast::lease held = order.acquire();
  const bool refused = !order.try_acquire();
  (void)session.force_release("order:1000");
  try {
    held.extend();  // learns of the loss
  } catch (const holdfast::error& e) {
    std::cout << e.what() << '\n';
  }
  for (const auto& s : collected.spans) std::cout << "span " << s << '\n';
  for (const auto& e : collected.events) std::cout << "event " << e << '\n';
  return refused && collected.spans.size() == 2 && collected.events.size() == 1 ? 0 : 1;
}
