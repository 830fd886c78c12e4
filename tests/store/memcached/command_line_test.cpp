#include "harness/command_line.hpp"
#ifdef HOLDFAST_TOOL
#include <nlohmann/json.hpp>

#include "store/memcached/fixture.hpp"

// The program holdfast, where a key contains another program's value.
namespace memcached_test {
namespace {

using nlohmann::json;
using words = std::vector<std::string>;

class memcached_command_line : public memcached_store {
 protected:
  const harness::command_line tool_{server_.url()};
};

TEST_F(memcached_command_line, data_of_another_program_is_reported_and_not_changed) {
  put("a cached page");
  for (const words& arguments : {words{"show", "orders", "--json"},
                                 {"try", "orders"},
                                 {"hold", "orders", "-n"},
                                 {"force-unlock", "orders", "--yes"}}) {
    const auto r = tool_(arguments);
    EXPECT_EQ(r.code, 78) << arguments.front() << r.out << r.err;
    EXPECT_EQ(r.out, "") << arguments.front();
    EXPECT_TRUE(r.err.starts_with("holdfast: ")) << r.err;
    EXPECT_TRUE(contains(r.err, "'a cached page', which holdfast did not write")) << r.err;
  }
  EXPECT_EQ(value(), "a cached page");
}

TEST_F(memcached_command_line, an_unreadable_entry_is_a_row_with_its_error) {
  const auto session = open();
  const lease held = mutex(session, "good").acquire();
  put("a cached page");
  const auto locks = json::parse(tool_({"list", "--json"}).out)["locks"];
  ASSERT_EQ(locks.size(), 2U) << locks;
  EXPECT_EQ(locks[0]["holders"].size(), 1U) << locks;
  EXPECT_EQ(locks[1]["lock"], "orders");
  EXPECT_TRUE(contains(locks[1]["error"], "a cached page")) << locks;
}

TEST_F(memcached_command_line, a_holder_with_few_known_facts_is_shown_without_the_rest) {
  put("hf1 0123456789abcdef0123456789abcdef mutex 1 0 0 - 0 -");
  harness::expect_nothing_invented(tool_, "orders");
}

}  // namespace
}  // namespace memcached_test
#endif
