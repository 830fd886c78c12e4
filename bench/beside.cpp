#include "bench/beside.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace bench {

namespace {

struct turns_had {
  int turns = 0;
  std::chrono::nanoseconds longest{0};
};

void take_turns(holdfast::mutex& lock, std::chrono::milliseconds turn,
                const std::atomic<bool>& over, turns_had& mine) {
  while (!over) {
    const auto began = std::chrono::steady_clock::now();
    lock.lock();
    mine.longest =
        std::max<std::chrono::nanoseconds>(mine.longest, std::chrono::steady_clock::now() - began);
    ++mine.turns;
    std::this_thread::sleep_for(turn);
    lock.unlock();
  }
}

}  // namespace

int beside_main(char** argv) {
  holdfast::session session = holdfast::open(argv[2]);
  holdfast::mutex lock(session, argv[3], {.lease = std::chrono::seconds(20)});
  std::vector<turns_had> tallies(std::strtoul(argv[4], nullptr, 10));
  const std::chrono::milliseconds turn(std::atol(argv[5]));
  std::string line;
  std::cout << "ready\n" << std::flush;
  std::getline(std::cin, line);
  std::atomic<bool> over{false};
  std::vector<std::thread> crew;
  crew.reserve(tallies.size());
  for (auto& t : tallies) crew.emplace_back([&] { take_turns(lock, turn, over, t); });
  std::getline(std::cin, line);
  over = true;
  for (auto& one : crew) one.join();
  turns_had all;
  for (const auto& t : tallies) {
    all.turns += t.turns;
    all.longest = std::max(all.longest, t.longest);
  }
  std::cout << all.turns << ' '
            << std::chrono::duration_cast<std::chrono::milliseconds>(all.longest).count() << '\n';
  return 0;
}

}  // namespace bench
