#include <csignal>

#include "tool/died.hpp"
#include "tool/fixture.hpp"

// A holder that died is shown as dead, where the store sees it.
namespace tool_test {

namespace {

class dead_holder : public holdfast_tool {
 protected:
  /// Leaves the lock held by no living process, for half a minute by its lease.
  void die_with(const std::string& lock) const {
    holder h(*this, {lock});
    h.process.signal(SIGKILL);
    EXPECT_EQ(h.process.wait(), 128 + SIGKILL);
  }
  std::string said(const words& arguments, int code = 0) const {
    const auto r = tool(arguments);
    EXPECT_EQ(r.code, code) << r.err;
    return r.out;
  }
};

testing::AssertionResult shows(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << part << " is not in\n" << text;
}

constexpr const char* who_is_next = "died; the next program that asks gets it";

}  // namespace

TEST_F(dead_holder, does_not_make_the_lock_busy) {
  die_with("l");
  EXPECT_TRUE(shows(said({"try", "l"}), who_is_next));
  EXPECT_EQ(nlohmann::json::parse(said({"try", "--json", "l"}))["free"], true);
}

TEST_F(dead_holder, is_shown_as_dead) {
  die_with("l");
  EXPECT_TRUE(shows(said({"show", "l"}), who_is_next));
  EXPECT_TRUE(shows(said({"list", "--wide"}), who_is_next));
  EXPECT_EQ(shown("l")["holders"][0]["died"], true);
}

TEST_F(dead_holder, is_seen_by_a_read_only_user) {
  die_with("l");
  EXPECT_TRUE(shows(said({"show", "l", "--store", store + "?access=read"}), who_is_next));
}

TEST_F(dead_holder, ends_a_wait_for_a_free_lock) {
  die_with("l");
  EXPECT_EQ(tool({"watch", "l", "--until", "free", "-w", "10s"}).code, 0);
}

TEST_F(dead_holder, is_an_event_when_it_dies_and_not_when_its_lease_ends) {
  holder h(*this, {"l"});
  program w(command({"watch", "l", "--until", "lost", "-w", "20s", "--interval", "20ms"}), around);
  EXPECT_TRUE(shows(w.out.line(), "holding"));
  h.process.signal(SIGKILL);
  const std::string line = w.out.line();
  EXPECT_TRUE(shows(line, " lost ")) << line;
  EXPECT_TRUE(line.ends_with(", died")) << line;
  EXPECT_EQ(w.wait(), 0);
}

TEST_F(dead_holder, is_not_counted_as_one) {
  die_with("l");
  EXPECT_TRUE(shows(said({"metrics"}), "group=\"l\"} 0"));
}

TEST_F(dead_holder, needs_no_force_unlock) {
  die_with("l");
  const auto r = tool({"doctor", "--json"});
  EXPECT_FALSE(shows(r.out, "leftover"));
  EXPECT_TRUE(shows(r.out, who_is_next));
}

TEST(without_the_dead, the_locks_of_dead_holders_are_free) {
  holdfast::name_info n;
  n.capacity = 5;
  n.remaining = 1;
  n.holders.resize(2);
  n.holders[0].weight = 3;
  n.holders[0].died = true;
  n.waiters.resize(1);
  n.waiters[0].died = true;
  const auto left = holdfast::tool::without_the_dead(n);
  EXPECT_EQ(left.remaining, 4U);
  EXPECT_EQ(left.holders.size(), 1U);
  EXPECT_TRUE(left.waiters.empty());
  EXPECT_EQ(holdfast::tool::death_phrase(n), std::string("1 of 2 holders ") + who_is_next);
  EXPECT_EQ(holdfast::tool::death_phrase(left), "");
}

}  // namespace tool_test
