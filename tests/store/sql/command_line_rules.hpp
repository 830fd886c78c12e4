#pragma once

#include "harness/command_line.hpp"
#ifdef HOLDFAST_TOOL
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <nlohmann/json.hpp>
#include <string>

/// What the program holdfast does with a lock of mode=session that another session holds.
namespace sql_test {

inline void command_line_leaves_the_lock_of_another_session(const std::string& url) {
  const auto session = holdfast::open(url);
  const auto held = holdfast::mutex(session, "m").acquire();
  const harness::command_line tool(url);
  harness::expect_nothing_invented(tool, "m");
  const auto holder = nlohmann::json::parse(tool({"show", "m", "--json"}).out)["holders"].at(0);
  EXPECT_TRUE(holder.value("reason", "").starts_with("connection ")) << holder;

  const auto refused = tool({"force-unlock", "m", "--yes"});
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_NE(refused.out.find("held by another program, not taken"), refused.out.npos)
      << refused.out << refused.err;
  const auto said = nlohmann::json::parse(tool({"force-unlock", "m", "--yes", "--json"}).out);
  EXPECT_EQ(said["removed"], 0) << said;
  EXPECT_EQ(said["left"], 1) << said;
  EXPECT_EQ(tool({"try", "m"}).code, 75);
  EXPECT_NO_THROW(held.check());

  EXPECT_EQ(tool({"try", "free"}).code, 0);
  const auto free = tool({"force-unlock", "free", "--yes"});
  EXPECT_EQ(free.code, 0) << free.err;
  EXPECT_EQ(free.out, "free was not held\n");
}

}  // namespace sql_test
#endif
