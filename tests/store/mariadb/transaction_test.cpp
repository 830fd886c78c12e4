#include <holdfast/store/transaction_locks.hpp>
#include <thread>

#include "fixture.hpp"

// Row locks in a transaction of another program's connection.
namespace mariadb_test {
namespace {

using harness::eventually;
using holdfast::errc;
using holdfast::row_lock;
using holdfast::when_locked;

class mariadb_transaction : public mariadb_store {
 protected:
  /// A connection of the program's own, in a transaction.
  class own {
   public:
    explicit own(int port) : c_(mysql_init(nullptr)) {
      if (mysql_real_connect(c_, "127.0.0.1", "admin", "", nullptr, static_cast<unsigned>(port),
                             nullptr, 0) == nullptr) {
        ADD_FAILURE() << mysql_error(c_);
      }
      run("start transaction");
    }
    ~own() { mysql_close(c_); }
    own(const own&) = delete;
    MYSQL* get() const { return c_; }
    void run(const char* sql) const {
      EXPECT_EQ(mysql_query(c_, sql), 0) << mysql_error(c_);
      mysql_free_result(mysql_store_result(c_));
    }

   private:
    MYSQL* const c_;
  };

  mariadb_transaction() {
    ask("create database `" + database_ + "`; create table " + stock_ +
        " (id int primary key, n int) engine = innodb; insert into " + stock_ +
        " values (1, 5), (2, 5)");
  }

  /// The server has undone the transaction: a lock acquired now would last for one statement only.
  static void expect_no_transaction(const own& c, const std::string& stock) {
    const auto again = outcome_of([&] { (void)row_lock(c.get(), stock, "id = 1"); });
    EXPECT_EQ(again.reason, errc::invalid_argument) << again.text;
  }

  const std::string stock_ = table("stock");
  const own a_{port()}, b_{port()};
};

TEST_F(mariadb_transaction, a_locked_row_can_be_awaited_refused_or_skipped) {
  EXPECT_EQ(row_lock(a_.get(), stock_, "id = 1"), 1u);
  EXPECT_EQ(row_lock(b_.get(), stock_, "id in (1, 2)", when_locked::skip), 1u);
  const auto refused =
      outcome_of([&] { (void)row_lock(a_.get(), stock_, "id = 2", when_locked::refuse); });
  EXPECT_EQ(refused.reason, errc::busy) << refused.text;
  a_.run("rollback");
  EXPECT_EQ(row_lock(b_.get(), stock_, "id in (1, 2)"), 2u);
}

TEST_F(mariadb_transaction, a_wait_beyond_the_server_s_time_out_is_timed_out) {
  (void)row_lock(a_.get(), stock_, "id = 1");
  b_.run("set innodb_lock_wait_timeout = 1");
  const auto late = outcome_of([&] { (void)row_lock(b_.get(), stock_, "id = 1"); });
  EXPECT_EQ(late.reason, errc::timed_out) << late.text;
  EXPECT_TRUE(contains(late.text, stock_)) << late.text;
}

TEST_F(mariadb_transaction, one_of_two_transactions_in_a_cycle_gets_a_deadlock_error) {
  (void)row_lock(a_.get(), stock_, "id = 1");
  (void)row_lock(b_.get(), stock_, "id = 2");
  harness::failing first;
  std::thread other([&] {
    first = outcome_of([&] { (void)row_lock(a_.get(), stock_, "id = 2"); });
    if (first.failed) expect_no_transaction(a_, stock_);
    a_.run("rollback");
  });
  const auto second = outcome_of([&] { (void)row_lock(b_.get(), stock_, "id = 1"); });
  if (second.failed) expect_no_transaction(b_, stock_);
  b_.run("rollback");
  other.join();
  EXPECT_NE(first.failed, second.failed) << "the server chooses one of them";
  EXPECT_EQ((first.failed ? first : second).reason, errc::deadlock);
}

TEST_F(mariadb_transaction, a_row_that_changed_since_the_snapshot_ends_the_transaction) {
  a_.run("set innodb_snapshot_isolation = on");
  a_.run(("select sum(n) from " + stock_).c_str());
  b_.run(("update " + stock_ + " set n = 4 where id = 1").c_str());
  b_.run("commit");
  const auto refused = outcome_of([&] { (void)row_lock(a_.get(), stock_, "id = 1"); });
  EXPECT_EQ(refused.reason, errc::deadlock) << refused.text;
  expect_no_transaction(a_, stock_);
}

TEST_F(mariadb_transaction, a_refusal_leaves_the_transaction_open) {
  (void)row_lock(a_.get(), stock_, "id = 1");
  const auto refused =
      outcome_of([&] { (void)row_lock(b_.get(), stock_, "id = 1", when_locked::refuse); });
  EXPECT_EQ(refused.reason, errc::busy) << refused.text;
  EXPECT_EQ(row_lock(b_.get(), stock_, "id = 2"), 1u);
  const auto other =
      outcome_of([&] { (void)row_lock(a_.get(), stock_, "id = 2", when_locked::refuse); });
  EXPECT_EQ(other.reason, errc::busy) << other.text;
}

TEST_F(mariadb_transaction, a_time_out_that_rolls_back_ends_the_transaction) {
  const harness::mariadb_server server({"--innodb-rollback-on-timeout=ON"});
  const client admin{server.port()};
  admin.ask(
      "create database d; create table d.stock (id int primary key) engine = innodb; "
      "insert into d.stock values (1), (2)");
  const own one{server.port()}, other{server.port()};
  (void)row_lock(one.get(), "d.stock", "id = 1");
  other.run("set innodb_lock_wait_timeout = 1");
  for (const auto how : {when_locked::wait, when_locked::refuse}) {
    const auto late = outcome_of([&] { (void)row_lock(other.get(), "d.stock", "id = 1", how); });
    EXPECT_EQ(late.reason, errc::deadlock) << late.text;
    expect_no_transaction(other, "d.stock");
    other.run("start transaction");
  }
}

TEST_F(mariadb_transaction, a_wrong_table_or_condition_is_an_error_of_the_program) {
  using row = std::pair<std::string, std::string>;
  for (const auto& [table, which] : {row{stock_ + "k", "id = 1"},
                                     {stock_, "9223372036854775807 + id > 0"},
                                     {stock_, "nr = 1"},
                                     {stock_, "no_such_function(id) = 1"},
                                     {stock_, "sum(id) = 1"},
                                     {stock_, "id = (select id from " + stock_ + ")"},
                                     {stock_, "id = ("}}) {
    const auto wrong = outcome_of([&] { (void)row_lock(a_.get(), table, which); });
    EXPECT_EQ(wrong.reason, errc::invalid_argument) << wrong.text;
    EXPECT_FALSE(contains(wrong.text, "holdfast_records")) << wrong.text;
  }
}

TEST_F(mariadb_transaction, without_a_transaction_nothing_is_locked) {
  a_.run("commit");
  const auto refused = outcome_of([&] { (void)row_lock(a_.get(), stock_, "id = 1"); });
  EXPECT_EQ(refused.reason, errc::invalid_argument) << refused.text;
}

}  // namespace
}  // namespace mariadb_test
