#include "kernel/permits_fixture.hpp"

namespace kernel_test {
namespace {

class election_kernel : public permits {
 protected:
  election_kernel() { kind_ = kind::election; }

  std::string led() const {
    std::string text;
    for (const auto& l : record_.history) text += l.note + " ";
    return text;
  }
  void lead(std::uint64_t owner) {
    permits_command c = command(permits_verb::acquire, owner);
    const std::string note = std::to_string(owner);
    c.note = note;
    c.wait = true;
    apply(c);
  }
};

TEST_F(election_kernel, keeps_all_leaders_in_the_order_of_their_terms) {
  lead(1);
  lead(2);
  EXPECT_EQ(led(), "1 ") << "a waiting candidate does not lead";
  release(1);
  EXPECT_EQ(led(), "1 2 ");
  pass(lease_);
  lead(3);
  release(3);
  EXPECT_EQ(led(), "1 2 3 ");
  EXPECT_EQ(who(), "|");
  EXPECT_EQ(record_.history.back().fence, record_.last_fence);
}

TEST_F(election_kernel, remembers_the_last_sixteen) {
  for (std::uint64_t i = 1; i <= 20; ++i) {
    lead(i);
    release(i);
  }
  EXPECT_EQ(record_.history.size(), most_led);
  EXPECT_EQ(record_.history.front().note, "5");
}

TEST_F(election_kernel, forgets_them_when_the_name_is_used_for_something_else) {
  lead(1);
  release(1);
  kind_ = kind::mutex;
  acquire(2);
  EXPECT_EQ(led(), "");
  release(2);
  EXPECT_EQ(led(), "");
}

}  // namespace
}  // namespace kernel_test
