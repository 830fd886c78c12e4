#include "harness/each_test.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "harness/seed.hpp"

namespace harness {

namespace {

// Read by the handler of a signal; written while none can come.
std::string current_message;

void over_the_bound(int) {
  if (::write(STDERR_FILENO, current_message.data(), current_message.size()) < 0) ::_exit(2);
  ::abort();
}

unsigned bound() {
  const char* const given = std::getenv("HOLDFAST_TEST_BOUND");
  return given == nullptr ? 60 : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

std::string name_of(const testing::TestInfo& test) {
  return std::string(test.test_suite_name()) + "." + test.name();
}

std::string to_repeat(const testing::TestInfo& test) {
  return "HOLDFAST_SEED=" + std::to_string(seed()) + " " +
         std::filesystem::read_symlink("/proc/self/exe").string() +
         " --gtest_filter=" + name_of(test);
}

// An alarm, not a thread: tests fork, and count their threads.
class each_test final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    ::alarm(0);
    current_message = "[  BOUND   ] " + name_of(test) + " did not end in " +
                      std::to_string(bound()) + " s\n[  REPEAT  ] " + to_repeat(test) + "\n";
    ::alarm(bound());
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    ::alarm(0);
    if (test.result()->Failed()) std::cerr << "[  REPEAT  ] " << to_repeat(test) << std::endl;
  }
};

}  // namespace

void watch_each_test() {
  seed();  // its own listener first
  struct sigaction action{};
  action.sa_handler = over_the_bound;
  ::sigaction(SIGALRM, &action, nullptr);
  testing::UnitTest::GetInstance()->listeners().Append(new each_test);
}

}  // namespace harness
