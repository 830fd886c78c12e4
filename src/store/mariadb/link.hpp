#pragma once

#include <mysql.h>

#include "base/words.hpp"
#include "store/mariadb/options.hpp"
#include "store/mariadb/prepared_update.hpp"
#include "store/mariadb/statements.hpp"
#include "store/mariadb/timed_calls.hpp"
#include "store/sql/row_link.hpp"

namespace holdfast::store::mariadb {

/// 0 for nothing.
inline std::int64_t number(const std::optional<std::string>& cell) noexcept {
  return cell ? base::number_at_start<std::int64_t>(*cell, 0) : 0;
}

/// The row operations over one connection. Statements that belong together are one text, which is
/// one round trip. Values are hexadecimal, so that no setting of the server can misread them.
class link final : public sql::row_link {
 public:
  /// Connects to the server, without selecting a database. The client library counts in seconds: it
  /// gets the whole seconds that are left until the deadline, or one. Fails with errc::timed_out if
  /// they were too few.
  static result<std::unique_ptr<link>> open(const mariadb_options& options, const tables& t,
                                            boot_time deadline = forever);
  ~link() override;
  link(const link&) = delete;

  bool usable() const noexcept override { return !broken_ && !in_transaction_; }
  bool did_nothing() const noexcept override { return did_nothing_; }
  std::int64_t server_number() const noexcept override { return server_; }
  result<std::vector<sql::row>> read(std::span<const std::string_view> names,
                                     boot_time deadline) override;
  result<std::vector<sql::replaced>> replace(std::span<const sql::replacement> all,
                                             boot_time deadline) override;
  result<std::vector<sql::row>> lock(std::span<const std::string_view> names,
                                     boot_time deadline) override;
  status unlock(std::span<const sql::rewrite> all, std::int64_t until_at,
                boot_time deadline) override;
  status sweep(std::span<const std::string> names, boot_time deadline) override;
  result<std::vector<state_store::entry>> entries(boot_time deadline) override;
  result<std::vector<state_store::entry>> entries_behind(std::string_view name, std::size_t most,
                                                         boot_time deadline) override;
  result<std::string> id_of_tables(boot_time) override;
  result<store::facts> facts(boot_time) override;

  using cells = std::vector<std::optional<std::string>>;
  /// The result of one statement of a text.
  struct answer {
    std::uint64_t affected = 0;
    std::vector<cells> rows{};
  };
  /// Runs statements separated by semicolons. The first failure ends the text.
  result<std::vector<answer>> ask(const std::string& text, boot_time deadline);
  result<std::vector<answer>> ask(const std::string& text) { return ask(text, in_time()); }
  /// ask() in two halves, for one statement that may take long: nothing else is sent in between.
  status begin(const std::string& text);
  bool answered() noexcept;  ///< or broken; does not wait
  result<std::vector<answer>> end();

  /// Breaks the connection if the server is read-only (takes_writes).
  status must_take_writes(boot_time deadline);
  status must_take_writes() { return must_take_writes(in_time()); }

  int fd() const noexcept { return static_cast<int>(mysql_get_socket(connection_)); }
  /// The server's number for this connection, from the handshake.
  std::int64_t id() const noexcept {
    return static_cast<std::int64_t>(mysql_thread_id(connection_));
  }

 private:
  link(MYSQL* c, const tables& t, const mariadb_options& o)
      : connection_(c), tables_(t), command_timeout_(o.command_timeout), patience_(seconds_of(o)) {}
  static std::int64_t seconds_of(const mariadb_options& o) noexcept;
  result<std::vector<answer>> ask_for_locks(const std::string& text, boot_time deadline);
  std::int64_t patience_until(boot_time deadline) const noexcept;
  boot_time in_time() const noexcept { return boot_clock::now() + command_timeout_; }
  failure failed();
  failure failed(unsigned number, std::string_view said);
  status take_rows(answer& into);
  result<std::vector<answer>> take_answers();
  std::string reading(std::string_view name) const;
  result<std::vector<state_store::entry>> entries_that(const std::string& are,
                                                       const std::string& limit,
                                                       boot_time deadline);
  std::string text_of(const sql::replacement& r) const;
  std::string beginning() const;
  result<sql::row> row_of(const answer& a);
  bool is_undone() noexcept;  ///< the transaction of the last failed statement
  failure leave();

  MYSQL* const connection_;
  const tables& tables_;
  const std::chrono::nanoseconds command_timeout_;
  const std::int64_t patience_;         ///< how many seconds the server waits for a lock …
  std::int64_t waits_for_ = patience_;  ///< … and at present; 0: unknown
  std::optional<timed_calls> calls_;    ///< once it is connected
  std::int64_t server_ = 0;
  bool broken_ = false;
  bool did_nothing_ = false;  ///< according to the last failure
  bool in_transaction_ = false;
  bool only_reads_ = false;  ///< according to the rows read last
  int guesses_ = 0;          ///< at most 2
  std::unique_ptr<prepared_update> prepared_;
};

}  // namespace holdfast::store::mariadb
