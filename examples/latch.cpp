// The shop opens when three services are ready, wherever they run.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <thread>
#include <vector>

int main() {
  auto session = holdfast::open("sqlite:locks.db");

  // #region latch
  holdfast::latch ready{session, "shop-ready:2024-11-29", 3};

  std::vector<std::jthread> services;
  for (int i = 0; i < 3; ++i) {
    services.emplace_back([&] {
      // … load the catalogue …
      ready.count_down();
    });
  }
  ready.wait();  // woken by the last count_down
  // #endregion

  std::cout << "open, " << ready.remaining() << " to go\n";
  return ready.try_wait() ? 0 : 1;
}
