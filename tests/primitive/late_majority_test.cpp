#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

#include "engine/slow_to_answer.hpp"
#include "engine/stage.hpp"
#include "harness/next_wake.hpp"

// As late_reply_test.cpp, for a majority: the lease counts from before the first request. When it
// ends here, a majority of the nodes has not ended it, so nobody else gets one.
namespace {

using namespace std::chrono_literals;
using holdfast::redlock;
using holdfast::store::permits_verb;

std::ptrdiff_t keep_it_longer_than(std::chrono::nanoseconds here,
                                   const std::vector<holdfast::session>& nodes) {
  return std::ranges::count_if(nodes, [&](const holdfast::session& node) {
    const auto holders = node.show("m").holders;
    return !holders.empty() && holders.front().expires_in > here;
  });
}

class late_majorities : public testing::Test {
 protected:
  std::vector<holdfast::session> open_three() {
    std::vector<holdfast::session> nodes;
    for (int i = 0; i < 3; ++i) {
      holdfast::session_options o;
      o.clock = clock_;
      o.lease = 30s;
      o.decorate = [d = late_, c = clock_](auto inner) {
        return std::make_unique<engine_test::slow_to_answer>(std::move(inner), d, c);
      };
      nodes.push_back(holdfast::open("memory:", o));
    }
    return nodes;
  }
  void answers_come(permits_verb verb, std::chrono::nanoseconds after) {
    late_->verb = verb;
    late_->each = after;
  }
  void expect_to_end_before_a_majority_ends_it(const holdfast::quorum_lease& held) const {
    std::ptrdiff_t longer{};
    holdfast::boot_time at;
    do {  // once more if an answer came in between: it advances the clock
      at = clock_->now();
      longer = keep_it_longer_than(held.remaining(), nodes_);
    } while (clock_->now() != at);
    EXPECT_GE(longer, 2) << "it lasts " << held.remaining().count() << " ns here";
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<engine_test::delay> late_ = std::make_shared<engine_test::delay>();
  const std::vector<holdfast::session> nodes_ = open_three();
  redlock lock_{nodes_, "m", {.node_timeout = 20s}};
};

TEST_F(late_majorities, an_acquired_lease_ends_before_a_majority_ends_it) {
  answers_come(permits_verb::acquire, 3s);
  const auto held = lock_.acquire();
  expect_to_end_before_a_majority_ends_it(held);
}

// A renewal of a majority is an acquire that is repeated.
TEST_F(late_majorities, a_renewed_lease_ends_before_a_majority_ends_it) {
  const auto held = lock_.acquire();
  answers_come(permits_verb::acquire, 1s);
  clock_->advance(10s);
  harness::eventually("renewed", [&] { return held.remaining() > 20s; });
  expect_to_end_before_a_majority_ends_it(held);
}

/// Holds back answers, and later lets them pass and holds back all requests.
class letters {
 public:
  enum class kept : std::uint8_t { nothing, answers, questions };

  void keep(kept what) {
    const std::lock_guard guard{mutex_};
    what_ = what;
    changed_.notify_all();
  }
  void await(kept what, int times) {
    harness::eventually("letters that are kept", [&] {
      const std::lock_guard guard{mutex_};
      return waiting_[what] >= times;
    });
  }
  void pass(kept what) {
    std::unique_lock lock{mutex_};
    if (what_ != what) return;
    ++waiting_[what];
    changed_.wait(lock, [&] { return what_ != what; });
    --waiting_[what];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  kept what_ = kept::nothing;
  std::map<kept, int> waiting_;
};

class behind_letters final : public harness::passing_on {
 public:
  behind_letters(std::unique_ptr<session_store> inner, std::shared_ptr<letters> by)
      : passing_on(std::move(inner)), by_(std::move(by)) {}

  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb != permits_verb::acquire) return inner_->permits(name, c);
    by_->pass(letters::kept::questions);
    auto reply = inner_->permits(name, c);
    by_->pass(letters::kept::answers);
    return reply;
  }

 private:
  const std::shared_ptr<letters> by_;
};

class late_letters : public testing::Test {
 protected:
  std::vector<holdfast::session> open_three() {
    std::vector<holdfast::session> nodes;
    for (int i = 0; i < 3; ++i) {
      holdfast::session_options o;
      o.clock = clock_;
      o.observer = seen_;
      o.lease = 30s;
      o.decorate = [by = letters_](auto inner) {
        return std::make_unique<behind_letters>(std::move(inner), by);
      };
      nodes.push_back(holdfast::open("memory:", o));
    }
    return nodes;
  }
  struct at_the_end {
    ~at_the_end() { of->keep(letters::kept::nothing); }
    letters* of;
  };

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<engine_test::recorder> seen_ = std::make_shared<engine_test::recorder>();
  const std::shared_ptr<letters> letters_ = std::make_shared<letters>();
  const std::vector<holdfast::session> nodes_ = open_three();
  redlock lock_{nodes_, "m", {.node_timeout = 20s}};
};

// The nodes have the request from the first round on, and their answers come in the second.
TEST_F(late_letters, answers_to_a_renewal_that_was_given_up_do_not_count_for_the_next) {
  const auto held = lock_.acquire();
  const at_the_end let_go{letters_.get()};
  letters_->keep(letters::kept::answers);
  clock_->advance(10s);
  letters_->await(letters::kept::answers, 3);
  clock_->advance(5s);
  seen_->await(holdfast::event_kind::renew_failed);
  harness::eventually("the next is given up, too", [&] {
    harness::pass(*clock_, 100ms);
    return seen_->count(holdfast::event_kind::renew_failed) > 1;
  });
  clock_->advance(1s);  // another round, in which they are not asked: they owe an answer
  letters_->keep(letters::kept::questions);
  letters_->await(letters::kept::questions, 3);  // so their answers have been read
  // Not all three: the third may still owe its answer to the acquire, and was not asked then.
  EXPECT_GE(keep_it_longer_than(held.remaining(), nodes_), 2);
}

}  // namespace
