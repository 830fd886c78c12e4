#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulation/advisory_locks.hpp"
#include "simulation/dialled.hpp"
#include "simulation/sql_run.hpp"

/// A simulated PostgreSQL or MariaDB: connections with transactions over two tables. It receives
/// the drivers' own texts.
namespace simulation {

/// The result of one statement.
struct sql_answer {
  std::string state{};  ///< PostgreSQL's SQLSTATE, or MariaDB's number; empty: no error
  std::string said{};
  sql_result result{};
};

/// One statement text of a batch, with its values.
struct sql_text {
  std::string text;
  std::vector<sql_value> values{};
};

struct sql_exchange : exchange {
  std::vector<sql_text> texts{};
  std::vector<sql_answer> answers{};  ///< up to the first error
  bool in_transaction = false;        ///< after the batch
};

struct sql_backend;
class sql_server;

/// The client's end of a connection, under a driver's client library.
class sql_client final : public dialled {
 public:
  sql_client(dialled_server& to, server& of, std::shared_ptr<connection> way);

  /// Sends a batch: one round trip.
  std::shared_ptr<sql_exchange> send(std::vector<sql_text> texts);
  /// Whether something has arrived that the driver has not read.
  bool has_input() const noexcept;

  std::deque<std::shared_ptr<sql_exchange>> sent;
  std::deque<std::string> lines;  ///< published on its channels

 private:
  sql_server& to_;
};

class sql_server final : public dialled_server {
 public:
  explicit sql_server(server& of);
  ~sql_server() override;

  std::unique_ptr<holdfast::store::session_store> connect(process& of) override;
  std::vector<std::string> names() override;
  std::string describe(std::string_view name) override;
  std::vector<user> users(std::string_view name) override;
  bool lets_one_wait_for_what_is_free(std::string_view name) override;
  std::optional<std::uint32_t> left_at_latch(std::string_view name) override;
  std::vector<std::string> peers_at_latch(std::string_view name) override;
  std::string for_ever() override;
  std::string idle_in_transaction(nanos longest) override;
  bool forget() override;
  bool divide(nanos until) override;
  void stopped() override;
  void process_died(const process& of) override;

  /// The server that a driver reaches under that host's name.
  static sql_server& named(const std::string& host);
  std::shared_ptr<sql_client> open(process& of) { return dial<sql_client>(of); }

 private:
  friend class sql_client;

  holdfast::result<std::unique_ptr<holdfast::store::state_store>> open_driver();
  void greet(const std::shared_ptr<dialled>& c) override;
  void take(int number, const std::shared_ptr<sql_exchange>& e);
  void leave(int number) override;

  void go_on(const std::shared_ptr<sql_backend>& b);
  void go_on_later(const std::shared_ptr<sql_backend>& b, nanos after);
  bool is_slow(const sql_backend& b);
  bool do_next(const std::shared_ptr<sql_backend>& b);
  bool do_next_of_locks(const std::shared_ptr<sql_backend>& b, const sql_text& t,
                        advisory_locks::asks what);
  sql_result carry_out_at_locks(sql_backend& b, const sql_text& t, advisory_locks::asks what);
  void answer_at_locks(sql_backend& b, sql_result r);
  void let_in();
  void cancel_soon(int number);
  void watch_for_silence(const std::shared_ptr<sql_backend>& b);
  holdfast::result<std::unique_ptr<holdfast::store::session_store>> open_session_locks();
  bool refuses(sql_backend& b, const sql_statement& s);
  bool do_one(const std::shared_ptr<sql_backend>& b, const sql_statement& s,
              const std::vector<sql_value>& values);
  sql_result run(sql_backend& b, const sql_statement& s, const std::vector<sql_value>& values);
  sql_value call(sql_backend& b, const std::string& function, std::span<const sql_value> of);
  void begin_waiting(const std::shared_ptr<sql_backend>& b, sql_row& row);
  void stop_waiting(sql_backend& b);
  void refuse(sql_backend& b, const char* postgres, const char* mariadb, std::string said);
  void finish(const std::shared_ptr<sql_backend>& b);
  void end_transaction(sql_backend& b, bool well);
  void end(const std::shared_ptr<sql_backend>& b, bool was_silent = false);
  void break_off(const std::shared_ptr<sql_backend>& b);
  void tell(std::int64_t from, const std::string& channel, const std::string& line);
  void mirror();
  bool is_postgres() const noexcept { return dialect_ == sql_dialect::postgres; }
  bool has_a_pool() const noexcept override { return !keeps_locks(); }
  bool keeps_locks() const noexcept { return of_.is_.keeps == server_traits::what::advisory; }

  sql_tables& tables_of(const sql_backend& b) noexcept;
  void end_the_former();

  const sql_dialect dialect_;
  std::unique_ptr<sql_tables> tables_ = std::make_unique<sql_tables>();
  /// Those of a former primary that still takes writes over the connections that it has.
  std::unique_ptr<sql_tables> former_;
  std::int64_t number_ = 1;  ///< of the primary to which new connections lead
  advisory_locks locks_;
  std::int64_t last_moment_ = 0;  ///< no two grants have the same microsecond
  sql_tables::copy replica_;      ///< knows less, and may take over
  std::map<int, std::shared_ptr<sql_backend>> backends_;
};

}  // namespace simulation
