// Waiting for locks without a thread for each: a coroutine, a future, a callback, and a wait that
// is stopped.
#include <coroutine>
#include <exception>
#include <future>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <utility>

// The smallest coroutine type that works: no code waits for its end. Any other type works, too.
struct task {
  struct promise_type {
    task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

int shipped = 0;  // protected by the lock
int waiting = 0;  // the same

// #region coroutine
task ship(holdfast::mutex& dock, int parcels, std::promise<void>& done) {
  for (int i = 0; i < parcels; ++i) {
    holdfast::result<holdfast::lease> held = co_await async_acquire(dock);
    if (!held) break;  // held.error() says why; held.value() would throw it
    ++shipped;
    (void)co_await async_release(std::move(*held));  // a failure is reported to the observer
  }
  done.set_value();
}
// #endregion

// #region condition
task unload(holdfast::mutex& dock, holdfast::condition_variable& arrived, std::promise<int>& got) {
  holdfast::lease held = (co_await async_acquire(dock)).value();
  while (waiting == 0) {
    held = (co_await async_wait(arrived, std::move(held))).value().held;
  }
  const int unloaded = std::exchange(waiting, 0);
  (void)co_await async_release(std::move(held));
  got.set_value(unloaded);
}
// #endregion

int main() {
  using namespace std::chrono_literals;
  auto session = holdfast::open("sqlite:locks.db");
  holdfast::mutex dock{session, "dock"};

  std::vector<std::promise<void>> done(50);  // fifty waits at the same time, and one thread for all
  for (auto& d : done) ship(dock, 10, d);
  for (auto& d : done) d.get_future().wait();

  // #region ways
  // A future, with a limit.
  std::future<holdfast::result<holdfast::lease>> later = async_acquire(dock, 500ms).future();
  holdfast::lease held = later.get().value();

  // A callback, and a wait that is stopped: it leaves the queue.
  std::stop_source stop;
  std::promise<holdfast::errc> why;
  async_acquire(dock, {}, stop.get_token()).start([&](holdfast::result<holdfast::lease> mine) {
    if (!mine) why.set_value(mine.error().code);
  });
  stop.request_stop();
  const bool called_off = why.get_future().get() == holdfast::errc::cancelled;
  // #endregion

  holdfast::condition_variable arrived{session, "arrived"};
  std::promise<int> got;
  unload(dock, arrived, got);
  (void)held.release();
  {
    const holdfast::lease mine = dock.acquire();
    waiting = 3;
  }
  arrived.notify_one();
  const int unloaded = got.get_future().get();

  std::cout << shipped << " parcels\n";
  return shipped == 500 && called_off && unloaded == 3 ? 0 : 1;
}
