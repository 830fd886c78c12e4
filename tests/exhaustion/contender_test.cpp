#include "exhaustion/failing_memory.hpp"
#include "harness/eventually.hpp"
#include "kernel/contender_family_fixture.hpp"

// The contender family has a thread of its own, which removes entries that are over.
namespace exhaustion {
namespace {

using namespace std::chrono_literals;
using holdfast::store::permits_outcome;

class contender_line : public kernel_test::contender_family {
 protected:
  const std::string name_ = "a name that is too long to need no memory";

  permits_reply enter(std::uint64_t owner) {
    return family_->permits(name_, command(permits_verb::acquire, owner)).value();
  }
  void until_given_up(std::size_t left) {
    harness::eventually("it is given up", [&] {
      clock_.advance(1s);
      return port_.size(name_) == left;
    });
  }
};

TEST_F(contender_line, removes_ended_entries_when_there_is_memory_again) {
  for (int n = 0; n < 12; ++n) {
    SCOPED_TRACE(n);
    ASSERT_EQ(enter(1).outcome, permits_outcome::granted);
    port_.fail_leaves = 1;
    {
      const no_memory_after now(n, of::others, how::for_good);
      const enough_memory here;
      clock_.advance(31s);
      harness::eventually("it has been tried", [&] {
        clock_.advance(100ms);
        return no_memory_after::failed() || port_.size(name_) == 0;
      });
    }
    until_given_up(0);
  }
}

// Where a call throws, the engine has its owner released.
TEST_F(contender_line, a_try_leaves_no_entry_although_it_has_no_memory_to_remove_it) {
  for (int n = 0; n < 40; ++n) {
    SCOPED_TRACE(n);
    port_.put(name_, stranger(1));
    bool enough = false, threw = false;
    {
      const no_memory_after now(n, of::this_thread);
      try {
        (void)family_->permits(name_, command(permits_verb::acquire, 2, false));
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      enough = !no_memory_after::failed();
    }
    if (threw) {
      ASSERT_TRUE(family_->permits(name_, command(permits_verb::release, 2)));
    }
    until_given_up(1);
    port_.remove_all(name_, {9, 1});
    if (enough || HasFailure()) return;
  }
  FAIL() << "it never had enough";
}

TEST_F(contender_line, removes_each_ended_entry_and_no_other) {
  for (int n = 0; n < 12; ++n) {
    SCOPED_TRACE(n);
    port_.put(name_, stranger(1));
    for (const std::uint64_t owner : {1u, 2u, 3u}) (void)enter(owner);
    {
      const no_memory_after now(n, of::others);
      const enough_memory here;
      clock_.advance(5s);
      until_given_up(1);
    }
    port_.remove_all(name_, {9, 1});
  }
}

}  // namespace
}  // namespace exhaustion
