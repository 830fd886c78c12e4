// Locks in a program that uses Asio (standalone, 1.22 or later).
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <holdfast/asio.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>

using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;

int billed = 0;

// #region asio
asio::awaitable<void> bill(holdfast::mutex& orders) {
  auto held = co_await async_acquire(orders, 5s)(asio::use_awaitable);
  if (!held) co_return;
  ++billed;
  (void)co_await async_release(std::move(*held))(asio::use_awaitable);
}

asio::awaitable<void> wait_for_one_of_two(holdfast::mutex& orders) {
  asio::steady_timer patience(co_await asio::this_coro::executor, 10ms);
  // The operation that comes too late is cancelled: a wait for the lock leaves the queue.
  const auto first = co_await (async_acquire(orders)(asio::use_awaitable) ||
                               patience.async_wait(asio::use_awaitable));
  if (first.index() == 1) std::cout << "still held after 10 ms\n";
}
// #endregion

int main() {
  asio::io_context io;
  auto session = holdfast::open("sqlite:locks.db");
  holdfast::mutex orders{session, "orders"};
  for (int i = 0; i < 20; ++i) asio::co_spawn(io, bill(orders), asio::detached);
  io.run();

  const holdfast::lease mine = orders.acquire();
  asio::co_spawn(io, wait_for_one_of_two(orders), asio::detached);
  io.restart();
  io.run();
  return billed == 20 && session.show("orders").waiters.empty() ? 0 : 1;
}
