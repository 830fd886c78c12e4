#include "harness/thread_ids.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace harness {

void in_a_thread_of_the_same_id(const std::function<void()>& first,
                                const std::function<void()>& second) {
  std::thread::id id;
  std::thread([&] {
    id = std::this_thread::get_id();
    first();
  }).join();
  bool found = false;
  for (int i = 0; i < 1000 && !found; ++i) {
    std::thread([&] {
      found = std::this_thread::get_id() == id;
      if (found) second();
    }).join();
  }
  if (!found) GTEST_LOG_(INFO) << "no thread id was given twice";
}

}  // namespace harness
