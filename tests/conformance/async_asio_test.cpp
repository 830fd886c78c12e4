#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <holdfast/asio.hpp>
#include <thread>

#include "conformance/cell.hpp"
#include "harness/eventually.hpp"

// The asynchronous forms with Asio's completion tokens.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using holdfast::errc;
using holdfast::lease;
using holdfast::result;

class async_asio : public suite {
 protected:
  holdfast::mutex lock_{here_, name_, of_row()};
  asio::io_context io_;
};

INSTANTIATE_TEST_SUITE_P(stores, async_asio, testing::ValuesIn(cells({"mutex"})), cell_name);

TEST_P(async_asio, a_handler_runs_on_its_executor_and_its_context_has_work_until_then) {
  const lease held = lock_.acquire();
  auto strand = asio::make_strand(io_);
  int told = 0;
  for (const auto limit : {0ms, 20ms}) {
    async_acquire(lock_, limit)(asio::bind_executor(strand, [&](result<lease> mine) {
      EXPECT_FALSE(mine);
      EXPECT_TRUE(strand.running_in_this_thread());
      ++told;
    }));
  }
  io_.run();
  EXPECT_EQ(told, 2);
}

asio::awaitable<void> add_in_turn(holdfast::mutex& lock, int times, int& sum) {
  for (int i = 0; i < times; ++i) {
    auto held = co_await async_acquire(lock)(asio::use_awaitable);
    EXPECT_TRUE(held);
    ++sum;
    EXPECT_TRUE(co_await async_release(std::move(held).value())(asio::use_awaitable));
  }
}

TEST_P(async_asio, coroutines_take_turns) {
  int sum = 0;
  for (int i = 0; i < 5; ++i) asio::co_spawn(io_, add_in_turn(lock_, 20, sum), asio::detached);
  io_.run();
  EXPECT_EQ(sum, 100);
  until_free();
}

TEST_P(async_asio, a_future_gets_the_lease) {
  auto got = async_acquire(lock_)(asio::use_future);
  EXPECT_TRUE(got.get());
}

TEST_P(async_asio, a_cancelled_wait_leaves_the_queue) {
  auto there = another();
  lease theirs = holdfast::mutex{there, name_}.acquire();
  asio::cancellation_signal cancel;
  errc why = errc::internal;
  async_acquire(lock_)(
      asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(io_, [&](result<lease> mine) {
                                     ASSERT_FALSE(mine);
                                     why = mine.error().code;
                                   })));
  until_waiting(1);
  cancel.emit(asio::cancellation_type::total);
  io_.run();
  EXPECT_EQ(why, errc::cancelled);
  expect_no_waiters();
  EXPECT_FALSE(theirs.release());
  until_free();
}

TEST_P(async_asio, a_wait_that_a_timer_ends_holds_nothing) {
  auto there = another();
  lease theirs = holdfast::mutex{there, name_}.acquire();
  std::size_t first = 2;
  asio::co_spawn(
      io_,
      [&]() -> asio::awaitable<void> {
        asio::steady_timer timer(io_, 20ms);
        const auto how = co_await (async_acquire(lock_)(asio::use_awaitable) ||
                                   timer.async_wait(asio::use_awaitable));
        first = how.index();
      },
      asio::detached);
  io_.run();
  EXPECT_EQ(first, 1U);
  expect_no_waiters();
  EXPECT_FALSE(theirs.release());
  until_free();
}

TEST_P(async_asio, a_cancellation_that_races_with_the_grant_leaves_nothing) {
  for (int i = 0; i < 100; ++i) {
    lease held = lock_.acquire();
    asio::cancellation_signal cancel;
    asio::io_context io;
    bool told = false;
    async_acquire(lock_)(asio::bind_cancellation_slot(
        cancel.slot(), asio::bind_executor(io, [&](result<lease> mine) {
          EXPECT_TRUE(mine || mine.error().code == errc::cancelled);
          told = true;
        })));
    std::thread releaser([&] { EXPECT_FALSE(held.release()); });
    cancel.emit(asio::cancellation_type::terminal);
    releaser.join();
    io.run();
    EXPECT_TRUE(told);
  }
  until_free();
}

class async_asio_conditions : public suite {};

INSTANTIATE_TEST_SUITE_P(stores, async_asio_conditions,
                         testing::ValuesIn(cells({"condition_variable"})), cell_name);

TEST_P(async_asio_conditions, a_cancelled_wait_leaves_the_queue_and_holds_no_mutex) {
  holdfast::mutex lock{here_, "lock"};
  holdfast::condition_variable changed{here_, name_};
  asio::io_context io;
  asio::cancellation_signal cancel;
  errc why = errc::internal;
  async_wait(changed, lock.acquire())(asio::bind_cancellation_slot(
      cancel.slot(), asio::bind_executor(io, [&](result<holdfast::woken> mine) {
        ASSERT_FALSE(mine);
        why = mine.error().code;
      })));
  until_waiting(1);
  cancel.emit(asio::cancellation_type::total);
  io.run();
  EXPECT_EQ(why, errc::cancelled);
  expect_no_waiters();
  EXPECT_TRUE(lock.try_acquire());
}

}  // namespace
}  // namespace conformance
