#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <holdfast/holdfast.hpp>
#include <string>
#include <vector>

#include "harness/crowd.hpp"

namespace harness {

/// For stores where names have records: an unreadable record hides no other name. `put` writes the
/// record of a name.
inline void expect_unreadable_records_hide_no_name(
    holdfast::session& of,
    const std::function<void(const std::string& name, const std::string& record)>& put) {
  using holdfast::errc;
  const auto held = holdfast::mutex(of, "good").acquire();
  holdfast::latch(of, "counted", 2).count_down();
  put("damaged", R"([1,"latch",2)");
  put("newer", R"([2,"latch",2])");
  put("foreign", "something");
  EXPECT_EQ(of.names(),
            (std::vector<std::string>{"counted", "damaged", "foreign", "good", "newer"}));
  EXPECT_EQ(of.show("good").holders.size(), 1U);
  EXPECT_EQ(of.show("counted").kind, "latch");
  const auto reason = [&](const char* name) {
    return thrown_by([&] { (void)of.show(name); }).reason();
  };
  EXPECT_EQ(reason("damaged"), errc::corrupt);
  EXPECT_EQ(reason("newer"), errc::newer_format);
  EXPECT_EQ(reason("foreign"), errc::foreign_data);
}

}  // namespace harness
