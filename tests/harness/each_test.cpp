#include "harness/each_test.hpp"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "harness/seed.hpp"

namespace harness {

namespace {

// Read by signal handlers; written between two tests.
std::string over_the_bound_message, died_message;

void say(const std::string& message) {
  if (::write(STDERR_FILENO, message.data(), message.size()) < 0) ::_exit(2);
}

void over_the_bound(int) {
  say(over_the_bound_message);
  ::abort();
}

// GoogleTest names a test when it ends: without this handler a test that crashes would not be
// named.
void died(int signal) {
  ::signal(signal, SIG_DFL);
  say(died_message);
  std::array<void*, 64> frames{};
  ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), static_cast<int>(frames.size())),
                         STDERR_FILENO);
  ::raise(signal);
}

/// Only where no other handler is set: the sanitizers' handlers report more.
void name_the_test_that_dies_of(int signal) {
  struct sigaction before{};
  if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
    ::signal(signal, died);
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

// An alarm instead of a thread: tests fork, and count their threads.
class each_test final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    ::alarm(0);
    const std::string repeat = "\n[  REPEAT  ] " + to_repeat(test) + "\n";
    over_the_bound_message = "[  BOUND   ] " + name_of(test) + " did not end in " +
                             std::to_string(bound()) + " s" + repeat;
    died_message = "[   DIED   ] " + name_of(test) + repeat;
    ::alarm(bound());
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    ::alarm(0);
    if (test.result()->Failed()) std::cerr << "[  REPEAT  ] " << to_repeat(test) << std::endl;
  }
};

}  // namespace

void watch_each_test() {
  seed();  // its own listener comes first
  struct sigaction action{};
  action.sa_handler = over_the_bound;
  ::sigaction(SIGALRM, &action, nullptr);
  void* first = nullptr;
  ::backtrace(&first, 1);  // loads what backtrace() needs, because a handler must not
  for (const int fatal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE})
    name_the_test_that_dies_of(fatal);
  testing::UnitTest::GetInstance()->listeners().Append(new each_test);
}

}  // namespace harness
