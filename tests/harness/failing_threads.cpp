#include "harness/failing_threads.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

namespace harness {

namespace {

std::atomic<bool> threads_fail{false};
std::atomic<bool> fail_for_good{false};
std::atomic<int> threads_left{0};
std::atomic<bool> a_thread_failed{false};

bool this_thread_fails() noexcept {
  if (!threads_fail) return false;
  const int before = threads_left.fetch_sub(1);
  const bool fails = fail_for_good ? before <= 0 : before == 0;
  if (fails) a_thread_failed = true;
  return fails;
}

}  // namespace

no_thread_after::no_thread_after(int threads, how often) {
  a_thread_failed = false;
  threads_left = threads;
  fail_for_good = often == how::for_good;
  threads_fail = true;
}

no_thread_after::~no_thread_after() { threads_fail = false; }

bool no_thread_after::failed() noexcept { return a_thread_failed; }

}  // namespace harness

// libstdc++ starts each std::thread here. The sanitizers intercept pthread_create(), which stays
// theirs.
void std::thread::_M_start_thread(_State_ptr state, void (*depend)()) {
  if (harness::this_thread_fails()) {
    throw std::system_error(EAGAIN, std::generic_category());
  }
  using start = void (std::thread::*)(_State_ptr, void (*)());
  static const start real = [] {
    union {
      void* found[2];
      start method;
    } as{{::dlsym(RTLD_NEXT,
                  "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_"
                  "EEPFvvE"),
          nullptr}};
    return as.method;
  }();
  (this->*real)(std::move(state), depend);
}
