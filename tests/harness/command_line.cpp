#include "harness/command_line.hpp"
#ifdef HOLDFAST_TOOL
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <nlohmann/json.hpp>

#include "harness/eventually.hpp"

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
    EXPECT_EQ(text.find("1970-"), text.npos) << text;  // and not in a port number
    if (!known.contains("pid")) EXPECT_EQ(text.find("pid"), text.npos) << text;
  }
}

void expect_the_command_outlives_a_hand_over(const std::string& url) {
  const command_line tool(url);
  const auto session = holdfast::open(url);
  auto held = holdfast::mutex(session, "handed").acquire();
  const auto next =
      tool.start({"run", "handed", "--", "sh", "-c", "echo started; read line; exit 3"});
  eventually("a waiter", [&] { return session.show("handed").waiters.size() == 1; });
  EXPECT_FALSE(held.release());
  EXPECT_EQ(next->out.line(), "started");
  eventually("renewed, or gone", [&] {
    const auto holders = json::parse(tool({"show", "handed", "--json"}).out)["holders"];
    return holders.empty() || holders[0]["expires_in_seconds"] > 10;
  });
  next->tell("\n");
  EXPECT_EQ(next->wait(), 3) << next->err.rest();
}

}  // namespace harness
#endif
