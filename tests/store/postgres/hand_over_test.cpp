#include "harness/hand_over.hpp"
#include <stdexcept>
#include "harness/command_line.hpp"

#include "fixture.hpp"
#include "harness/overheard.hpp"
#include "session/session_impl.hpp"
#include "store/postgres/listener.hpp"
#include "store/sql/notification_text.hpp"

// As redis_hand_over, but sending a notification, and listening to one, need no right here.
namespace postgres_test {
namespace {

using harness::overheard;
using holdfast::lease;
using holdfast::store::notification;

class postgres_hand_over : public postgres_store {
 protected:
  static void notify(const client& by, const holdfast::session& to, const notification& n) {
    std::string line = holdfast::store::sql::encode(n);
    line.pop_back();
    by.ask("select pg_notify('" + holdfast::store::postgres::channel_of(to.impl()->peer()) +
           "', '" + line + "')");
  }

  std::shared_ptr<overheard> heard_ = std::make_shared<overheard>();
  holdfast::session a_ = open();
  holdfast::session b_ = holdfast::open(url(), heard_->options());
  holdfast::session c_ = open();
};

TEST_F(postgres_hand_over, along_a_queue_costs_one_command_each) {
  harness::hand_over_line(a_, b_, c_).expect_one_command_each();
}

#ifdef HOLDFAST_TOOL
TEST_F(postgres_hand_over, lasts_for_the_command_that_run_starts) {
  harness::expect_the_command_outlives_a_hand_over(url());
}
#endif

TEST_F(postgres_hand_over, that_was_overheard_lets_no_other_waiter_in) {
  harness::hand_over_line line(a_, b_, c_);
  lease two = line.handed_over();
  notification n = heard_->last();
  ASSERT_TRUE(n.secret);
  n.owner = a_.impl()->permits("m", {})->found.queue.at(0).owner;
  n.fence += 1'000'000;
  n.expires_at += 3'600'000'000;
  line.expect_the_third_asks_after([&] { notify(admin_, c_, n); });
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(line.last.get().value());
}

TEST_F(postgres_hand_over, leaves_no_secret_where_it_can_be_read) {
  harness::hand_over_line line(a_, b_, c_);
  lease two = line.handed_over();
  const auto there =
      ask("select string_agg(r::text, ' ') from " + table("holdfast_records") + " r");
  EXPECT_TRUE(contains(there, to_string(heard_->last().owner))) << there;
  EXPECT_FALSE(contains(there, to_string(heard_->last().secret))) << there;
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(line.last.get().value());
}

TEST_F(postgres_hand_over, that_a_read_only_user_forged_gives_nothing_before_any_answer) {
  const std::string schema = "schema \"" + schema_ + "\" to " + user_;
  ask("grant usage on " + schema + "; grant select on all tables in " + schema);
  const client spy{url_of_user()};
  EXPECT_THROW((void)spy.ask("delete from " + table("holdfast_records")), std::runtime_error);
  harness::deaf_waiter waiter(a_, url());
  const auto record = a_.impl()->permits("m", {})->found;
  notification n;
  n.what = holdfast::store::notification_kind::granted;
  n.name = "m";
  n.owner = record.queue.at(0).owner;
  n.fence = record.last_fence + 1'000'000;
  n.expires_at = record.holders.at(0).expires_at + 3'600'000'000;
  EXPECT_TRUE(
      contains(spy.ask("select record from " + table("holdfast_records")), to_string(n.owner)));
  for (const auto& secret : {holdfast::store::owner_id{}, n.owner, record.holders.at(0).owner}) {
    n.secret = secret;
    notify(spy, waiter.session(), n);
  }
  waiter.expect_it_gets_nothing();
}

}  // namespace
}  // namespace postgres_test
