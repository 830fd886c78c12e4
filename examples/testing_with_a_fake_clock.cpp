// How a program that uses holdfast tests what happens when a lease ends: without waiting for it.
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <iostream>
#include <memory>

int main() {
  using namespace std::chrono_literals;

  // #region testing_with_a_fake_clock
  auto clock = std::make_shared<holdfast::testing::fake_clock>();
  auto session = holdfast::open("memory:", {.clock = clock});
  holdfast::mutex nightly{session, "nightly", {.lease = 30s, .renew = false}};

  holdfast::lease first = nightly.acquire();
  clock->advance(29s);
  const bool still_ours = !holdfast::mutex{session, "nightly"}.try_acquire();
  clock->advance(2s);  // the lease is over, and not one second has passed
  const bool told = first.state() == holdfast::lease_state::lost;

  holdfast::mutex elsewhere{session, "nightly"};
  auto second = elsewhere.try_acquire();
  const bool grown = second && second->fence() > first.fence();
  // #endregion

  std::cout << "kept " << still_ours << ", told " << told << ", fence grew " << grown << '\n';
  return still_ours && told && grown ? 0 : 1;
}
