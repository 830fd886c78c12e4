#include <holdfast/store/transaction_locks.hpp>
#include <thread>

#include "fixture.hpp"

// Locks in a transaction of another program's connection.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::errc;
using holdfast::row_lock;
using holdfast::when_locked;

class postgres_transaction : public postgres_store {
 protected:
  /// A connection of the program's own, in a transaction.
  class own {
   public:
    explicit own(const std::string& url) : c_(PQconnectdb(in_libpq_s_words(url).c_str())) {
      run("begin");
    }
    ~own() { PQfinish(c_); }
    own(const own&) = delete;
    PGconn* get() const { return c_; }
    void run(const char* sql) const {
      PGresult* const r = PQexec(c_, sql);
      EXPECT_TRUE(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK)
          << PQerrorMessage(c_);
      PQclear(r);
    }

   private:
    static std::string in_libpq_s_words(const std::string& url) {
      return "postgresql" + url.substr(url.find(':'));
    }
    PGconn* const c_;
  };

  postgres_transaction() {
    (void)ask("create schema \"" + schema_ + "\"; create table " + stock_ +
              " (id int primary key, n int); insert into " + stock_ + " values (1, 5), (2, 5)");
  }
  /// Waits until that connection waits for a lock at this server.
  void until_waiting(const own& who) const {
    const auto pid = std::to_string(PQbackendPID(who.get()));
    eventually("it waits", [&] {
      return ask("select wait_event_type from pg_stat_activity where pid = " + pid) == "Lock";
    });
  }

  const std::string stock_ = table("stock");
  const own a_{base_}, b_{base_};
};

TEST_F(postgres_transaction, a_locked_row_can_be_awaited_refused_or_skipped) {
  EXPECT_EQ(row_lock(a_.get(), stock_, "id = 1"), 1u);
  EXPECT_EQ(row_lock(b_.get(), stock_, "true", when_locked::skip), 1u);
  const auto refused =
      outcome_of([&] { (void)row_lock(a_.get(), stock_, "id = 2", when_locked::refuse); });
  EXPECT_EQ(refused.reason, errc::busy) << refused.text;
  a_.run("rollback");
  EXPECT_EQ(row_lock(b_.get(), stock_, "true"), 2u);
}

TEST_F(postgres_transaction, a_wait_beyond_lock_timeout_is_timed_out) {
  (void)row_lock(a_.get(), stock_, "id = 1");
  b_.run("set local lock_timeout = '20ms'");
  const auto late = outcome_of([&] { (void)row_lock(b_.get(), stock_, "id = 1"); });
  EXPECT_EQ(late.reason, errc::timed_out) << late.text;
  EXPECT_TRUE(contains(late.text, stock_)) << late.text;
  const auto after = outcome_of([&] { (void)row_lock(b_.get(), stock_, "id = 2"); });
  EXPECT_EQ(after.reason, errc::invalid_argument) << after.text;
}

TEST_F(postgres_transaction, one_of_two_transactions_in_a_cycle_gets_a_deadlock_error) {
  (void)row_lock(a_.get(), stock_, "id = 1");
  (void)row_lock(b_.get(), stock_, "id = 2");
  a_.run("set local deadlock_timeout = '1h'");  // so that the other one is the victim
  b_.run("set local deadlock_timeout = '10ms'");
  std::thread first([&] { EXPECT_EQ(row_lock(a_.get(), stock_, "id = 2"), 1u); });
  until_waiting(a_);
  const auto victim = outcome_of([&] { (void)row_lock(b_.get(), stock_, "id = 1"); });
  EXPECT_EQ(victim.reason, errc::deadlock) << victim.text;
  b_.run("rollback");
  first.join();
}

TEST_F(postgres_transaction, a_named_lock_ends_with_the_transaction_and_excludes_mode_session) {
  auto s = open("&mode=session");
  holdfast::mutex m{s, "orders"};
  holdfast::transaction_lock(a_.get(), "orders", schema_);
  EXPECT_FALSE(holdfast::try_transaction_lock(b_.get(), "orders", schema_));
  EXPECT_TRUE(holdfast::try_transaction_lock(b_.get(), "orders"));
  EXPECT_FALSE(m.try_lock());
  a_.run("commit");
  EXPECT_TRUE(m.try_lock());
}

TEST_F(postgres_transaction, a_wrong_table_or_condition_is_an_error_of_the_program) {
  for (const auto& [table, which] : {std::pair{stock_ + "k", "id = 1"},
                                     {stock_, "id = 1 / (id - id)"},
                                     {stock_, "nr = 1"},
                                     {stock_, "true group by n"},
                                     {stock_, "id = (select generate_series(1, 2))"},
                                     {stock_, "id = ("}}) {
    const own one{base_};
    const auto wrong = outcome_of([&] { (void)row_lock(one.get(), table, which); });
    EXPECT_EQ(wrong.reason, errc::invalid_argument) << wrong.text;
    EXPECT_FALSE(contains(wrong.text, "holdfast_records")) << wrong.text;
  }
}

TEST_F(postgres_transaction, without_a_transaction_nothing_is_locked) {
  a_.run("commit");
  const auto refused = outcome_of([&] { (void)row_lock(a_.get(), stock_, "id = 1"); });
  EXPECT_EQ(refused.reason, errc::invalid_argument) << refused.text;
}

}  // namespace
}  // namespace postgres_test
