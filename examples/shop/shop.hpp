#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/shop/orders.hpp"

namespace flash_sale {

/// The state of a product that a buyer saw.
struct seen {
  std::int64_t stock = 0;
  std::int64_t version = 0;
};

/// The state that must be unchanged for a sale to be written.
struct condition {
  bool same_version = false;  ///< the optimistic form: nobody wrote since
  std::uint64_t fence = 0;    ///< nobody claimed the product with a greater one; 0: no fence
};

/// The tables' figures after a sale.
struct ledger {
  std::int64_t sold = 0;
  std::int64_t should_sell = 0;
  std::int64_t oversold = 0;       ///< units sold above the stock, over all products
  std::int64_t lost_updates = 0;   ///< writes over a state that their writer had not seen
  std::vector<std::string> wrong;  ///< products with sold != min(stock, demand), with the figures
};

/// The shop's database. One object is one connection, for one thread, in the process that opened
/// it. Errors are std::runtime_error.
class shop {
 public:
  virtual ~shop() = default;

  /// A lock's holder calls it before look(): no sale with a smaller fence is written from now on,
  /// and it waits for a dead predecessor's pending commit. False if a greater fence was seen.
  virtual bool claim(std::size_t product, std::uint64_t fence) = 0;
  /// In a transaction, it keeps others from writing the product until the end.
  virtual seen look(std::size_t product) = 0;
  /// Sells `units` to the order, and sets the stock to the seen value less the units, whatever it
  /// is by now: one transaction. False, and nothing changed, if the condition does not hold.
  virtual bool sell(const order& o, std::int64_t units, const seen& before,
                    const condition& only_if) = 0;
  /// Whether that order has a sale.
  virtual bool has_sale(const order& o) = 0;

  /// A transaction around look() and sell().
  virtual void begin() = 0;
  virtual void commit() = 0;

  virtual ledger audit() = 0;
};

}  // namespace flash_sale
