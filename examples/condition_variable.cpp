// A consumer sleeps until a producer, in any process, has put something in.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <thread>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");
  holdfast::mutex orders{session, "orders"};
  int waiting = 0;  // in a real program: a table, a file, a folder
  int done = 0;

  // #region condition_variable
  std::thread producer([&] {
    holdfast::condition_variable arrived{session, "orders:arrived"};
    for (int i = 0; i < 3; ++i) {
      const std::scoped_lock guard{orders};
      ++waiting;
      arrived.notify_one();
    }
  });

  holdfast::condition_variable arrived{session, "orders:arrived"};
  while (done < 3) {
    std::unique_lock guard{orders};
    if (!arrived.wait_for(guard, 10s, [&] { return waiting > 0; })) break;
    --waiting;
    ++done;
  }
  // #endregion
  producer.join();
  std::cout << done << " orders\n";
  return done == 3 ? 0 : 1;
}
