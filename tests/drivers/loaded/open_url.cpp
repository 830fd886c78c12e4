#include <chrono>
#include <cstdio>
#include <fstream>
#include <holdfast/session.hpp>
#include <string>

// open_url URL: opens it with one try, and prints "opened" or what went wrong; then the files that
// are loaded.
int main(int argc, char** argv) {
  try {
    holdfast::open(argc > 1 ? argv[1] : "", {.store_timeout = std::chrono::milliseconds::zero()});
    std::puts("opened");
  } catch (const holdfast::error& e) {
    std::printf("%s: %s\n", e.code().message().c_str(), e.what());
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.find('/');
    if (slash != std::string::npos && line.find("r-xp") != std::string::npos) {
      std::printf("loaded %s\n", line.c_str() + slash);
    }
  }
}
