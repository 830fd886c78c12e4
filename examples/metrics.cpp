// What a program serves at GET /metrics, without any dependency: how long it waits for locks and
// holds them, and how often it loses one.
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <memory>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  // #region metrics
  const auto counted = std::make_shared<holdfast::metrics>();
  auto session = holdfast::open("memory:", {.observer = counted, .decorate = counted->timer()});
  counted->preregister(session.url(), "mutex", "order");  // its panels begin at zero

  holdfast::mutex order{session, "order:1000"};
  holdfast::lease held = order.acquire();
  if (!order.try_acquire()) std::cerr << "busy, as it should be\n";
  held.extend();  // a renewal, as the session makes them by itself
  (void)held.release();

  const auto format = argc > 1 && std::string_view(argv[1]) == "prometheus"
                          ? holdfast::metrics_format::prometheus
                          : holdfast::metrics_format::openmetrics;
  std::cout << counted->text(format);  // with Content-Type: content_type(format)
  // #endregion

  const std::shared_ptr<holdfast::observer> logged = std::make_shared<holdfast::event_log>(
      holdfast::event_log_options{.write = [](auto, std::string_view line) { std::cerr << line; }});
  holdfast::session_options options;
  // #region both
  std::vector<std::shared_ptr<holdfast::observer>> both{counted, logged};
  options.observer = std::make_shared<holdfast::observers>(both);
  // #endregion
  holdfast::mutex{holdfast::open("memory:", options), "another"}.lock();
}
