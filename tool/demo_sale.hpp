#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "examples/shop/shop.hpp"
#include "tool/demo_worker.hpp"

namespace holdfast::tool::demo {

struct sale_settings {
  std::size_t workers = 8;
  std::size_t kills = 0;  ///< this many workers are killed, each in the middle of a purchase
};

struct sale_result {
  strategy how{};
  ledger books;
  std::chrono::nanoseconds took{};  ///< from "go" until the last order was done
  std::size_t orders = 0;
  std::uint64_t retries = 0;  ///< failed attempts: another worker had written
  std::chrono::microseconds wait_p50{}, wait_p99{};
  std::size_t killed = 0;
  std::size_t killed_while_buying = 0;

  double orders_per_second() const;
};

/// INT, TERM or HUP arrived.
struct stopped : std::runtime_error {
  explicit stopped(int number) : runtime_error{"stopped by a signal"}, signal{number} {}
  int signal;
};

/// Called now and then with the number of orders that are done.
using progress = std::function<void(std::size_t done)>;

/// Runs one strategy on a fresh shop. Killed workers are replaced. Throws stopped, and failure_exit
/// when a worker gives up.
sale_result hold_sale(const task& t, const catalogue& all, const sale_settings& settings,
                      const progress& show);

/// Checks that workers in processes of their own can use the store; throws failure_exit if not. The
/// check runs in a child, because a process that has had a session should not fork.
void try_store(const std::string& url);

}  // namespace holdfast::tool::demo
