#include "harness/seed.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace harness {

namespace {

std::uint64_t choose_seed() {
  if (const char* const given = std::getenv("HOLDFAST_SEED"))
    return std::strtoull(given, nullptr, 0);
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

const std::uint64_t chosen = choose_seed();

// Once a test, so that the log of a failed test always has it.
class seed_printer final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) std::cerr << "[  SEED    ] HOLDFAST_SEED=" << chosen << std::endl;
  }
};

}  // namespace

std::uint64_t seed() {
  static const bool printed = [] {
    std::cerr << "[  SEED    ] HOLDFAST_SEED=" << chosen << std::endl;
    testing::UnitTest::GetInstance()->listeners().Append(new seed_printer);
    return true;
  }();
  (void)printed;
  return chosen;
}

int histories(int all) {
  const char* const percent = std::getenv("HOLDFAST_HISTORIES");
  return percent == nullptr ? all : static_cast<int>(std::int64_t{all} * std::atoi(percent) / 100);
}

}  // namespace harness
