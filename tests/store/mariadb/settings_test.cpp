#include <algorithm>
#include <cctype>

#include "fixture.hpp"
#include "harness/short_rules.hpp"

// Settings of the server or of a user that change what statements mean. No test of one primitive
// has them all.
namespace mariadb_test {
namespace {

using harness::mariadb_server;
using holdfast::errc;

/// The server has, from its start, what cannot be set while it runs. The rest is set for a test.
class mariadb_settings : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<mariadb_server>(
        std::vector<std::string>{"--character-set-client-handshake=OFF",
                                 "--character-set-server=latin1", "--lower-case-table-names=1"});
    client(server_->port()).ask("create user app@'%'; grant all on `t%`.* to app@'%'");
  }
  static void TearDownTestSuite() { server_.reset(); }
  ~mariadb_settings() override { set("init_connect = ''"); }

  std::string url(const std::string& options = {}) const {
    return server_->url() + database_ + options;
  }
  /// As a user for whom the server carries out init_connect.
  std::string url_of_app() const {
    std::string as_app = url();
    return as_app.replace(as_app.find("admin"), 5, "app");
  }
  void ask(const std::string& statement) const { (void)admin_.ask(statement); }
  void set(const std::string& what) const { ask("set global " + what); }
  int rows() const {
    return std::stoi(admin_.ask("select count(*) from " + database_ + ".holdfast_records"));
  }

  static std::unique_ptr<mariadb_server> server_;
  const std::string database_ = fresh_name();
  const client admin_{server_->port()};
};

std::unique_ptr<mariadb_server> mariadb_settings::server_;

TEST_F(mariadb_settings, of_many_kinds_change_no_rule) {
  const std::pair<const char*, const char*> all[] = {
      {"sql_mode = 'ORACLE'", "sql_mode = default"},
      {"sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,EMPTY_STRING_IS_NULL,"
       "HIGH_NOT_PRECEDENCE,REAL_AS_FLOAT,NO_UNSIGNED_SUBTRACTION,SIMULTANEOUS_ASSIGNMENT'",
       "sql_mode = default"},
      {"sql_mode = '', global time_zone = '+13:00', global sql_auto_is_null = 1",
       "sql_mode = default, global time_zone = system, global sql_auto_is_null = 0"},
      {"unique_checks = 0, global foreign_key_checks = 0",
       "unique_checks = 1, global foreign_key_checks = 1"},
      {"tx_isolation = 'SERIALIZABLE', global autocommit = 0, global completion_type = 1",
       "tx_isolation = default, global autocommit = 1, global completion_type = 0"},
      {"innodb_snapshot_isolation = 1, global query_cache_type = 1, global wait_timeout = 1",
       "innodb_snapshot_isolation = 0, global query_cache_type = 0, global wait_timeout = 28800"},
      {"init_connect = 'set autocommit = 0, names utf8mb3'", "init_connect = ''"}};
  int limiters = 0;
  for (const auto& [setting, usual] : all) {
    SCOPED_TRACE(setting);
    set(setting);
    harness::expect_short_rules({url(), url_of_app(), url_of_app()});
    set(usual);
    EXPECT_LE(rows(), ++limiters) << "other names have none";
  }
}

// The server converts what it sends to the character set that it thinks the client has. Then a
// session that takes the record over writes it back as it came.
TEST_F(mariadb_settings, of_character_sets_leave_every_letter_of_a_record) {
  for (const std::string names : {"latin1", "utf8mb3"}) {
    set("init_connect = 'set names " + names + "'");
    harness::expect_short_rules({url_of_app(), url_of_app()});
  }
}

// The statements of such a user would all be carried out at the same time of the server.
TEST_F(mariadb_settings, that_stop_the_clock_of_a_user_grant_no_lock_twice) {
  (void)holdfast::open(url());
  set("init_connect = 'set timestamp = 1'");
  harness::expect_short_rules({url_of_app(), url()});
}

// Tables of another engine have no transactions, and keep no row locked.
TEST_F(mariadb_settings, that_choose_another_engine_are_refused_with_the_remedy) {
  for (const std::string engine : {"Aria", "MyISAM"}) {
    set("sql_mode = '', global enforce_storage_engine = " + engine);
    const auto refused = harness::outcome_of_opening(url());
    set("sql_mode = default, global enforce_storage_engine = null");
    EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
    EXPECT_TRUE(contains(refused.text, engine)) << refused.text;
    EXPECT_TRUE(contains(refused.text, "engine = InnoDB")) << refused.text;
    ask("alter table " + database_ + ".holdfast_records engine = InnoDB");
    EXPECT_EQ(harness::outcome_of_opening(url()).reason, errc::unsupported) << "the other table";
    ask("alter table " + database_ + ".holdfast_meta engine = InnoDB");
    harness::expect_short_rules({url(), url_of_app()});
    ask("drop database " + database_);
  }
  set("enforce_storage_engine = Aria");
  const auto refused = harness::outcome_of_opening(url());
  set("enforce_storage_engine = null");
  EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
  EXPECT_TRUE(contains(refused.text, "InnoDB")) << refused.text;
}

// What a view shows may be a table of such an engine, whose rows nobody can lock.
TEST_F(mariadb_settings, that_put_a_view_in_place_of_a_table_are_refused) {
  (void)holdfast::open(url());
  for (const std::string name : {"holdfast_records", "holdfast_meta"}) {
    const std::string whole = database_ + "." + name, behind = database_ + ".behind";
    ask("rename table " + whole + " to " + behind + "; alter table " + behind +
        " engine = Aria; create view " + whole + " as select * from " + behind);
    for (const auto& each : {url(), url_of_app()}) {
      const auto refused = harness::outcome_of_opening(each);
      EXPECT_EQ(refused.reason, errc::foreign_data) << refused.text;
      EXPECT_TRUE(contains(refused.text, name + "` is a view")) << refused.text;
    }
    ask("drop view " + whole + "; rename table " + behind + " to " + whole + "; alter table " +
        whole + " engine = InnoDB");
  }
  harness::expect_short_rules({url(), url_of_app()});
}

// With lower_case_table_names both spellings name one database.
TEST_F(mariadb_settings, by_which_two_spellings_name_one_database_grant_no_lock_twice) {
  std::string shouted = url();
  const auto at = shouted.rfind('/');
  std::transform(shouted.begin() + static_cast<std::ptrdiff_t>(at), shouted.end(),
                 shouted.begin() + static_cast<std::ptrdiff_t>(at), ::toupper);
  harness::expect_short_rules({url(), shouted});
  harness::expect_short_rules({url("?mode=session"), shouted + "?mode=session"}, false);
}

TEST_F(mariadb_settings, that_forbid_statements_are_named) {
  (void)holdfast::open(url());
  set("tx_read_only = 1");
  auto s = holdfast::open(url());
  holdfast::mutex m{s, "m"};
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  set("tx_read_only = 0");
  EXPECT_EQ(refused.reason, errc::read_only) << refused.text;
  EXPECT_TRUE(contains(refused.text, "tx_read_only")) << refused.text;
}

}  // namespace
}  // namespace mariadb_test
