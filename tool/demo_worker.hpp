#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "tool/demo_board.hpp"
#include "tool/demo_orders.hpp"
#include "tool/demo_shops.hpp"

namespace holdfast::tool::demo {

enum class strategy { no_lock, optimistic, row_lock, holdfast_mutex };

struct strategy_name {
  strategy what;
  std::string_view key;    ///< on the command line and in JSON
  std::string_view title;  ///< in the table
  bool promises;           ///< that nothing is oversold
};

inline constexpr std::array<strategy_name, 4> strategies{{
    {strategy::no_lock, "no-lock", "no lock", false},
    {strategy::optimistic, "optimistic", "optimistic version", true},
    {strategy::row_lock, "row-lock", "row lock", true},
    {strategy::holdfast_mutex, "holdfast", "holdfast mutex", true},
}};

constexpr const strategy_name& name_of(strategy s) {
  return strategies[static_cast<std::size_t>(s)];
}

/// The inputs of a worker.
struct task {
  strategy how{};
  shop_place shop;
  std::string store;        ///< URL, for the holdfast mutex
  std::string lock_prefix;  ///< a name space of this run's own, on a store that others use too
  std::chrono::microseconds pause{};
};

/// How long a lock outlives its holder on stores that cannot see a process die: the sale of one
/// product stops for that long at most.
inline constexpr std::chrono::milliseconds demo_lease{3000};

/// Buys until all orders are done. Call it in a process of its own: `ready` gets a byte when
/// everything is open, and the work begins when `go` is closed. First completes the order that a
/// killed worker of this number left undone. Returns the exit code; problems are on the board.
int work(const task& t, const catalogue& all, board& b, std::size_t worker, int ready, int go);

}  // namespace holdfast::tool::demo
