#pragma once

#include <gtest/gtest.h>

#include <holdfast/error.hpp>
#include <vector>

/// Durations that no clock reaches, and their required effects.
namespace primitive_test {

template <class Duration>
std::vector<Duration> extremes() {
  return {Duration::min(), Duration::min() + Duration(1), Duration(-1),   Duration(0),
          Duration(1),     Duration::max() - Duration(1), Duration::max()};
}

/// Nothing on success.
template <class Use>
holdfast::errc refusal(Use use) {
  try {
    use();
    return {};
  } catch (const holdfast::error& e) {
    return e.reason();
  }
}

template <class Duration, class Use>
void expect_used_or_refused(Use use) {
  for (const auto d : extremes<Duration>()) {
    const holdfast::errc how = refusal([&] { use(d); });
    EXPECT_TRUE(how == holdfast::errc{} || how == holdfast::errc::invalid_argument)
        << d.count() << ": " << make_error_code(how).message();
  }
}

}  // namespace primitive_test
