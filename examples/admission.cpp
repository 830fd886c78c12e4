// A service that limits how many requests begin in a second, and how many run at the same time.
#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");

  // #region admission
  holdfast::rate_limiter limiter{
      session, "api", {{.tokens = 100, .per = 1s}, {.tokens = 10, .per = 1s, .by = {"client"}}}};
  holdfast::semaphore slots{session, "api slots", 8};
  holdfast::admission door{limiter, slots};

  const auto serve = [&](std::string_view client) {
    holdfast::admitted in = door.try_admit(1, {{"client", client}});
    if (in.why == holdfast::refused_by::permits) return 503;
    if (in.why == holdfast::refused_by::tokens) {
      std::cout << "Retry-After: " << std::chrono::ceil<std::chrono::seconds>(in.rate.wait).count()
                << '\n';
      return 429;
    }
    // … the work, while in.permit is held …
    return 200;
  };
  // #endregion

  for (int i = 0; i < 10; ++i) {
    if (serve("acme") != 200) return 1;
  }
  const auto full = slots.acquire(8);
  return serve("umbrella") == 503 ? 0 : 1;
}
