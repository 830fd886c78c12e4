#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "bench/measure.hpp"

namespace bench {

/// The cost of an operation while a number grows: names in use, leases held and renewed, waiters
/// for one name, sessions. One row for each number, at most `most`; `say` gets each row as soon as
/// it is measured.
void measure_growth(const std::string& url, std::size_t most,
                    const std::function<void(const row&)>& say);

}  // namespace bench
