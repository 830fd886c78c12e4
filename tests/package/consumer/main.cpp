#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <mutex>

#ifndef CONSUMER_URL
#define CONSUMER_URL "sqlite:consumer.db"
#endif

int main() {
  auto session = holdfast::open(CONSUMER_URL);
  holdfast::mutex orders{session, "order:1"};
  {
    const std::scoped_lock guard{orders};
  }
  const holdfast::lease held = orders.acquire();
  return held.fence() > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
