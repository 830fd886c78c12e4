// A gateway lets through what its plans allow, whichever of its instances is asked.
#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");

  // #region rate_limiter
  // All of them decide together: every rule gives a token, or none does.
  holdfast::rate_limiter gateway{
      session,
      "gateway",
      {{.tokens = 1000, .per = 1s, .name = "overall"},
       {.tokens = 10, .per = 1s, .burst = 20, .by = {"client"}, .name = "second"},
       {.tokens = 600, .per = 1min, .by = {"client"}, .name = "minute"},
       {.tokens = 50, .per = 1s, .by = {"api", "address"}, .name = "address"}}};

  const auto answer = [&](std::string_view client, std::string_view address) {
    const auto d =
        gateway.try_take(1, {{"client", client}, {"api", "orders"}, {"address", address}});
    const auto& nearest = d.tightest();
    std::cout << (d ? "200" : "429") << " RateLimit-Limit: " << nearest.limit
              << " RateLimit-Remaining: " << nearest.remaining << '\n';
    if (!d)
      std::cout << "Retry-After: " << std::chrono::ceil<std::chrono::seconds>(d.wait).count()
                << '\n';
    return d.taken;
  };
  // #endregion

  bool all = true;
  for (int i = 0; i < 20; ++i) all = answer("acme", "192.0.2.1") && all;
  const bool other = answer("umbrella", "192.0.2.2");

  // #region waiting
  // A batch job takes what it needs ahead, and sleeps until it is due: one round trip.
  const auto d =
      gateway.take_for(5, 10s, {{"client", "acme"}, {"api", "report"}, {"address", "192.0.2.1"}});
  std::cout << "after " << d.wait.count() << " us\n";
  // #endregion
  return all && other && d ? 0 : 1;
}
