// How a program that uses holdfast tests what happens when a lease ends: without waiting for it.
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <iostream>
#include <memory>

int main() {
  using namespace std::chrono_literals;

  // #region testing
  // Two sessions on one memory store stand for two processes.
  auto clock = std::make_shared<holdfast::testing::fake_clock>();
  auto here = holdfast::open("memory:test", {.clock = clock});
  auto there = holdfast::open("memory:test", {.clock = clock});
  holdfast::mutex nightly{here, "nightly", {.lease = 30s, .renew = false}};
  holdfast::mutex elsewhere{there, "nightly"};

  holdfast::lease first = nightly.acquire();
  clock->advance(29s);
  const bool kept = !elsewhere.try_acquire();
  clock->advance(2s);  // the lease is over; no real time has passed
  const bool told = first.state() == holdfast::lease_state::lost;

  auto second = elsewhere.try_acquire();
  const bool grown = second && second->fence() > first.fence();
  // #endregion

  std::cout << "kept " << kept << ", told " << told << ", fence grew " << grown << '\n';
  return kept && told && grown ? 0 : 1;
}
