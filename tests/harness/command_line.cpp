#include "harness/command_line.hpp"
#ifdef HOLDFAST_TOOL
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace harness {

using nlohmann::json;

void expect_nothing_invented(const command_line& tool, const std::string& name,
                             const std::set<std::string>& known) {
  const auto shown = tool({"show", name, "--json"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  const auto holders = json::parse(shown.out)["holders"];
  ASSERT_EQ(holders.size(), 1U) << shown.out;
  for (const char* const field :
       {"pid", "since", "held_seconds", "fence", "expires_in_seconds", "expires_at", "died"}) {
    EXPECT_EQ(holders[0].contains(field), known.contains(field)) << field << ": " << shown.out;
  }
  const auto tried = tool({"try", name, "--json"});
  EXPECT_EQ(tried.code, 75) << tried.err;
  EXPECT_EQ(json::parse(tried.out)["holders"].size(), 1U) << tried.out;
  const auto in_words = tool({"try", name});
  EXPECT_EQ(in_words.code, 75) << in_words.err;
  EXPECT_TRUE(in_words.out.starts_with(name + " is busy · held by ")) << in_words.out;
  for (const std::string& text : {shown.out, tried.out, in_words.out, tool({"show", name}).out}) {
    EXPECT_EQ(text.find("1970"), text.npos) << text;
    if (!known.contains("pid")) EXPECT_EQ(text.find("pid"), text.npos) << text;
  }
}

}  // namespace harness
#endif
