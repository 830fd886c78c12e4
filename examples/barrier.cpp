// Workers on any machines compute in steps: no worker begins a step before all have finished the
// step before it.
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <thread>
#include <vector>

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");
  int merged = 0;

  // #region barrier
  const auto worker = [&](holdfast::session mine) {
    holdfast::barrier step{
        mine, "simulation", 3, {.lease = 10s, .on_completion = [&] { ++merged; }}};
    for (int i = 0; i < 4; ++i) {
      // … this worker's share of step i …
      step.arrive_and_wait();  // errc::lost: one of them has died
    }
  };
  // #endregion
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) workers.emplace_back(worker, session);
  for (auto& w : workers) w.join();

  // #region deadline
  holdfast::barrier pair{session, "pair", 2};
  holdfast::barrier::arrival mine = pair.arrive();
  if (!pair.wait_for(mine, 50ms)) std::cout << "the other has not come yet\n";
  // #endregion
  return merged == 4 ? 0 : 1;
}
