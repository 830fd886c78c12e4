#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "harness/detached_task.hpp"
#include "harness/eventually.hpp"
#include "harness/temp_dir.hpp"
#include "session/session_impl.hpp"

// A hundred thousand requests that wait for one name in one process, without a thread each: all are
// served.
namespace {

using holdfast::lease;
using holdfast::mutex;
using holdfast::result;

constexpr int many = 100'000;

int threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return 0;
}

/// Not atomic: the lock protects the count.
struct tally {
  int served = 0;
  std::uint64_t last_fence = 0;
  std::atomic<bool> all{false};

  void serve(result<lease> held) {
    ASSERT_TRUE(held) << held.error().what;
    EXPECT_GT(held->fence(), last_fence);
    last_fence = held->fence();
    if (++served == many) all = true;
  }
};

harness::detached_task wait_in_a_coroutine(mutex& m, tally& of) {
  of.serve(co_await async_acquire(m));
}

void wait_for_a_callback(mutex& m, tally& of) {
  async_acquire(m).start([&](result<lease> held) { of.serve(std::move(held)); });
}

template <class Begin>
void serve_many(const std::string& url, const std::string& form, Begin begin) {
  auto session = holdfast::open(url);
  mutex m{session, "m"};
  tally of;
  lease held = m.acquire();
  const auto before = mallinfo2().uordblks;
  for (int i = 0; i < many; ++i) begin(m, of);
  const auto local_queue = session.impl()->local_queue_of(m.name());
  harness::eventually("all in line", [&] { return local_queue->waiting() == many; });
  const auto first = session.store_operations();
  const auto each = (mallinfo2().uordblks - before) / many;
  EXPECT_LE(threads_of_this_process(), 8);
  EXPECT_FALSE(held.release());
  harness::eventually("all served", [&] { return of.all.load(); });
  std::cout << "[ MEASURED ] " << form << " on " << url.substr(0, url.find(':')) << ": " << many
            << " waited, " << each << " bytes each, " << threads_of_this_process() << " threads, "
            << session.store_operations() - first << " store operations to serve them\n";
  EXPECT_LE(each, 4'096U) << "no thread's stack each";
}

TEST(many_pending, callbacks_are_served_without_a_thread_each) {
  serve_many("memory:", "callbacks", wait_for_a_callback);
}

TEST(many_pending, coroutines_are_served_without_a_thread_each) {
  serve_many("memory:", "coroutines", wait_in_a_coroutine);
}

TEST(many_pending, callbacks_are_served_on_a_store_between_processes) {
  const harness::temp_dir dir;
  serve_many("sqlite:" + dir.file("locks.db"), "callbacks", wait_for_a_callback);
}

TEST(many_pending, all_waits_end_with_an_error_when_their_session_closes) {
  std::atomic<int> told{0};
  // Held by a session that stays: when a session closes, its leases would be granted to the
  // waiters.
  const auto stays = holdfast::open("memory:many_pending");
  mutex theirs{stays, "m"};
  const lease held = theirs.acquire();
  {
    auto session = holdfast::open("memory:many_pending");
    mutex m{session, "m"};
    for (int i = 0; i < many; ++i) {
      async_acquire(m).start([&](const result<lease>& how) { told += how ? 0 : 1; });
    }
  }
  EXPECT_EQ(told, many);
}

TEST(many_pending, all_can_be_stopped_at_once) {
  auto session = holdfast::open("memory:");
  mutex m{session, "m"};
  lease held = m.acquire();
  std::stop_source stop;
  std::atomic<int> told{0};
  for (int i = 0; i < many; ++i) {
    async_acquire(m, {}, stop.get_token()).start([&](const result<lease>& how) {
      told += how ? 0 : 1;
    });
  }
  stop.request_stop();
  harness::eventually("told", [&] { return told == many; });
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(m.try_acquire());
}

}  // namespace
