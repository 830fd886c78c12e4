#include "drivers/drivers.hpp"

// Compiled once for each store that is loaded: HOLDFAST_DRIVER is its name.
HOLDFAST_STORE_DRIVER(holdfast::drivers::HOLDFAST_DRIVER());
