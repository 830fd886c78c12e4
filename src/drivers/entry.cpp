#include "drivers/drivers.hpp"

// Compiled once for each store that is loaded: HOLDFAST_DRIVER is its name.
const holdfast::store::driver* holdfast_store_driver_1() noexcept {
  return &holdfast::drivers::HOLDFAST_DRIVER();
}
