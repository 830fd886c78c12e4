#pragma once

#include <string>

#include "bench/measure.hpp"

namespace bench {

enum class form { table, markdown, json };

/// The text above the rows; empty for JSON.
std::string heading(form f);
/// One line, with its end.
std::string line(form f, const row& r);

}  // namespace bench
