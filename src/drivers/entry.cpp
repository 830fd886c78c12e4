#include "drivers/drivers.hpp"

// Compiled once for each loadable store: HOLDFAST_DRIVER is the store's name.
const holdfast::store::driver* holdfast_store_driver_1() noexcept {
  return &holdfast::drivers::HOLDFAST_DRIVER();
}
