#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <holdfast/clock.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/options.hpp"

namespace holdfast::store::postgres {

struct answer_deleter {
  void operator()(PGresult* r) const noexcept { PQclear(r); }
};

/// The server's answer to one statement.
class answer {
 public:
  explicit answer(PGresult* r) : result_(r) {}
  PGresult* get() const noexcept { return result_.get(); }
  int rows() const noexcept { return PQntuples(get()); }
  bool is_null(int r, int c) const noexcept { return PQgetisnull(get(), r, c) != 0; }
  std::string_view text(int r, int c) const noexcept {
    return {PQgetvalue(get(), r, c), static_cast<std::size_t>(PQgetlength(get(), r, c))};
  }
  /// The number of rows that the statement changed.
  std::int64_t changed() const noexcept;
  /// 0 for text that is not a number, and for NULL.
  std::int64_t number(int r, int c) const noexcept;

 private:
  std::unique_ptr<PGresult, answer_deleter> result_;
};

/// A statement with its parameters ($1, $2, …); an empty parameter is NULL. The text is not copied.
struct statement {
  statement(const char* text, std::vector<std::optional<std::string>> values = {})
      : sql(text), parameters(std::move(values)) {}
  statement(const std::string& text, std::vector<std::optional<std::string>> values = {})
      : statement(text.c_str(), std::move(values)) {}

  const char* sql;
  std::vector<std::optional<std::string>> parameters;
};

/// One connection to a server, always in pipeline mode: statements sent together cost one round
/// trip and, unless noted otherwise, are one transaction. For one thread at a time.
///
/// Statements are prepared when they are first used, unless there is a pooler in between: behind a
/// pooler each transaction may reach another server. A pooler is detected by a process id that is
/// not the server's.
class wire {
 public:
  /// Begins to connect, and to check the server (opening.hpp), in steps that do not wait (except
  /// for libpq's lookup of a host's name). Each step is to be taken when the socket, which may have
  /// changed, has the wanted events.
  static std::unique_ptr<wire> begin_open(const address& to);
  /// Returns true when the connection is open. Waits until `whole_by` for the rest of an answer
  /// that has begun to arrive.
  result<bool> go_on_opening(boot_time whole_by);
  short wants() const noexcept;
  ~wire() { PQfinish(connection_); }
  wire(const wire&) = delete;

  /// Returns the answers, one a statement. If one statement fails, all of them have failed.
  result<std::vector<answer>> ask(std::span<const statement> all, boot_time deadline);
  result<std::vector<answer>> ask(std::initializer_list<statement> all, boot_time deadline) {
    return ask(std::span(all.begin(), all.size()), deadline);
  }

  /// ask() in two halves, for a statement that may take long: nothing else is sent in between.
  status begin(const statement& s, boot_time deadline);
  bool answered() noexcept;  ///< or broken; does not wait
  result<std::vector<answer>> end(boot_time deadline);

  /// The connection works, and no transaction is open.
  bool usable() const noexcept;
  /// The last request failed, and the server's answer proves that all of it was undone.
  bool did_nothing() const noexcept { return did_nothing_; }
  /// The connection works, as far as is known.
  bool alive() const noexcept { return !broken_ && PQstatus(connection_) == CONNECTION_OK; }
  bool pooled() const noexcept { return pooled_; }
  /// Distinguishes servers: the microsecond of the minute at which the server was started.
  std::int64_t server() const noexcept { return server_; }
  int fd() const noexcept { return PQsocket(connection_); }
  std::string_view host() const noexcept { return PQhost(connection_); }  ///< as in the parameters
  std::string_view port() const noexcept { return PQport(connection_); }
  int backend() const noexcept { return PQbackendPID(connection_); }  ///< the server's process

  /// Reads the available bytes, without waiting. False: the connection broke.
  bool read() noexcept { return PQconsumeInput(connection_) == 1; }
  /// The next message published on the channels that this connection listens to.
  std::optional<std::string> next_notification();

 private:
  explicit wire(PGconn* c) : connection_(c) { PQsetNoticeReceiver(c, &wire::hear, this); }
  static void hear(void* self, const PGresult* said);
  result<bool> connect();
  status look_at(const answer& said);
  /// The expected answers: null for a statement's, its text for the answer to preparing it.
  using expected = std::vector<const char*>;
  bool send(const statement& s, expected& to_come);
  bool send_prepared(const statement& s, expected& to_come);
  result<std::vector<answer>> receive(const expected& to_come, boot_time deadline);
  failure refused(const PGresult* answer, const char* preparing);
  status wait_for_result(boot_time deadline);
  failure broken();
  failure not_at_a_standby();

  PGconn* const connection_;
  PostgresPollingStatusType opening_ = PGRES_POLLING_WRITING;
  bool greeted_ = false;
  bool pooled_ = true;
  bool broken_ = false;
  bool did_nothing_ = false;
  bool unproven_ = false;  ///< committed, and perhaps at no standby
  std::int64_t server_ = 0;
  std::set<std::string, std::less<>> prepared_;  ///< by text
  expected begun_;
};

}  // namespace holdfast::store::postgres
