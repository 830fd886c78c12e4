// Locks in traces: a span for each acquisition, and events on the span that a thread is in. A
// thread of the session is in no span, so what it reports becomes a span of its own, with a link to
// the acquisition. The example has a tracer of its own, with the few functions of OpenTelemetry's
// that it needs (docs/monitoring.md says which they are), so that it compiles without that library.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using attributes = std::map<std::string, std::string>;
using moment = std::chrono::system_clock::time_point;

/// Stands for opentelemetry::trace::Tracer.
struct tracer {
  using context = std::size_t;

  /// StartSpan(name, attributes, links, {.start_system_time}), End(), and GetContext()
  context span(const std::string& name, moment from, const attributes& of,
               std::optional<context> link = {}) {
    const std::lock_guard guard{mutex};
    spans.push_back(name + ' ' + of.at("lock.group") + (link ? " of " + spans.at(*link) : ""));
    starts.push_back(from);
    changed.notify_all();
    return spans.size() - 1;
  }
  /// GetCurrentSpan()->GetContext().IsValid()
  static bool in_span() { return current; }
  /// GetCurrentSpan()->AddEvent(name, attributes): without a current span nothing is recorded
  void event(const std::string& name, const attributes& of) {
    const std::lock_guard guard{mutex};
    if (current) events.push_back(name + ' ' + of.at("lock.group"));
  }

  static thread_local bool current;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> spans, events;
  std::vector<moment> starts;
};
thread_local bool tracer::current = false;

// #region telemetry
/// Names are not attributes: there may be millions of them.
class traces final : public holdfast::observer {
 public:
  explicit traces(tracer& to) : to_(to) {}

  void on_event(const holdfast::event& e) override {
    using kind = holdfast::event_kind;
    const std::string what = "holdfast." + std::string(to_string(e.kind));
    const auto now = std::chrono::system_clock::now();
    const hold here{e.name, e.fence};
    if (e.kind == kind::acquired || e.kind == kind::busy || e.kind == kind::gave_up) {
      const auto began = now - std::chrono::duration_cast<std::chrono::microseconds>(e.waited);
      const auto context = to_.span("holdfast.acquire", began, about(e));
      const std::lock_guard guard{mutex_};
      if (e.kind == kind::acquired) held_.insert_or_assign(here, context);
    } else if (e.kind == kind::released) {
      (void)ended(here);
    } else if (e.kind != kind::renewed) {
      const auto acquired = e.kind == kind::lost ? ended(here) : found(here);
      if (tracer::in_span()) return to_.event(what, about(e));
      (void)to_.span(what, now, about(e), acquired);
    }
  }

 private:
  using hold = std::pair<std::string, std::uint64_t>;  // the name and the fence
  std::optional<tracer::context> found(const hold& h) const {
    const std::lock_guard guard{mutex_};
    const auto at = held_.find(h);
    return at == held_.end() ? std::nullopt : std::optional(at->second);
  }
  std::optional<tracer::context> ended(const hold& h) {
    const auto acquired = found(h);
    const std::lock_guard guard{mutex_};
    held_.erase(h);
    return acquired;
  }
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
  mutable std::mutex mutex_;
  std::map<hold, tracer::context> held_;  // the acquisitions whose locks are still held
};
// #endregion

int main() {
  tracer collected;
  const auto clock = std::make_shared<holdfast::testing::fake_clock>();
  const auto session =
      holdfast::open("memory:", {.observer = std::make_shared<traces>(collected), .clock = clock});
  holdfast::mutex order{session, "order:1000"};
  tracer::current = true;
  holdfast::lease held = order.acquire();
  const bool refused = !order.try_acquire();
  (void)session.force_release("order:1000");
  try {
    held.extend();  // learns of the loss, in the span of this thread
  } catch (const holdfast::error& e) {
    std::cout << e.what() << '\n';
  }

  holdfast::mutex invoice{session, "invoice:7"};
  const holdfast::lease second = invoice.acquire();
  clock->advance(std::chrono::hours(1));  // as if the machine had slept: a thread of the session
                                          // finds that the lease has ended
  const std::string loss = "holdfast.lost invoice of holdfast.acquire invoice";
  std::unique_lock lock{collected.mutex};
  // There may be spans of other events, too: that hour may count as a pause.
  collected.changed.wait(lock, [&] { return std::ranges::count(collected.spans, loss) == 1; });
  for (const auto& s : collected.spans) std::cout << "span " << s << '\n';
  for (const auto& e : collected.events) std::cout << "event " << e << '\n';
  const bool on_span = collected.events == std::vector<std::string>{"holdfast.lost order"};
  return refused && on_span ? 0 : 1;
}
