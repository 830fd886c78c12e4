#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace sql_test {

/// `shown` returns the URL for people, or the error.
inline void times_out_of_bounds_are_refused_with_the_bounds(
    const std::string& url, const std::function<std::string(const std::string&)>& shown) {
  for (const std::string option : {"command_timeout", "connect_timeout"}) {
    for (const std::string bad : {"10000000000h", "25h", "1e99", "0"}) {
      const auto said = shown(url + "?" + option + "=" + bad);
      EXPECT_EQ(said, option + " goes from 1ms to 24h") << bad;
    }
    EXPECT_EQ(shown(url + "?" + option + "=24h"), url);
  }
  for (const std::string bad : {"10000000000h", "25h", "2999ms", "0"}) {
    const auto said = shown(url + "?mode=session&session=" + bad);
    EXPECT_EQ(said, "session goes from 3s to 24h") << bad;
  }
}

}  // namespace sql_test
