// #region first_program
#include <chrono>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <mutex>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");
  holdfast::mutex orders{session, "order:1000"};
  {
    std::unique_lock lock{orders, 500ms};  // waits for half a second at most
    if (!lock) return 75;                  // another process holds it
    std::cout << "billing order 1000 with fence " << orders.fence() << '\n';
  }  // unlocked here

  holdfast::lease held = orders.acquire();  // a handle that any thread may own
  std::cout << "again, with the greater fence " << held.fence() << '\n';
  if (held.lost().stop_requested()) return 1;  // true if the lock was lost
}
// #endregion
