#include "family/own_entries.hpp"

#include <gtest/gtest.h>

#include <holdfast/testing.hpp>

// The remaining jobs of the contender family's thread.
namespace kernel_test {
namespace {

using namespace std::chrono_literals;
using holdfast::family::own_entries;
using holdfast::store::owner_id;
using kind = own_entries::job::kind;

class own_entries_jobs : public testing::Test {
 protected:
  void later(kind what, const std::string& name, const owner_id& owner,
             std::chrono::nanoseconds in = 0ns) {
    entries_.later({what, name, owner, {}, false, clock_.now() + in});
  }
  std::string next() {
    const auto job = entries_.next();
    return job.empty() ? "none" : job.front().name;
  }

  const owner_id one_{1, 1};
  const owner_id other_{2, 2};
  holdfast::testing::fake_clock clock_;
  holdfast::family::shared_watches watches_{[](auto...) {}};
  own_entries entries_{clock_, watches_};
};

// A store may report arrivals and fail to read the queue: both request another query.
TEST_F(own_entries_jobs, search_arrivals_once_for_any_number_of_requests) {
  later(kind::see_arrivals, "a", one_);
  later(kind::see_arrivals, "a", one_, 1h);
  later(kind::see_arrivals, "a", one_);
  later(kind::see_arrivals, "b", one_);
  later(kind::see_arrivals, "b", other_);
  EXPECT_EQ(next(), "a") << "at the earlier of its times";
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "b");
  entries_.stop();
  EXPECT_EQ(next(), "none");
}

// The job is removed then: a caller that takes it over first checks what the thread is doing.
TEST_F(own_entries_jobs, may_be_requested_again_after_the_thread_postponed_one) {
  later(kind::see_arrivals, "a", one_);
  entries_.later(entries_.next());
  later(kind::see_arrivals, "a", one_);
  EXPECT_FALSE(entries_.take_over("a", one_));
  EXPECT_EQ(next(), "a");
}

TEST_F(own_entries_jobs, remove_each_entry_that_is_to_be_removed) {
  later(kind::give_up, "a", one_);
  later(kind::give_up, "a", one_);
  EXPECT_EQ(next(), "a");
  EXPECT_EQ(next(), "a");
}

}  // namespace
}  // namespace kernel_test
