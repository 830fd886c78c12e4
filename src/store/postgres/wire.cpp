#include "store/postgres/wire.hpp"

#include <poll.h>

#include "base/readiness.hpp"
#include "base/words.hpp"
#include "store/postgres/errors.hpp"
#include "store/sql/whole_or_broken.hpp"

namespace holdfast::store::postgres {

namespace {

using base::wait_until_ready;

failure no_answer() {
  return {errc::unavailable,
          "the server did not answer in time; is it stopped, the network cut, or a row locked by "
          "another session (pg_stat_activity)?"};
}

PGconn* start(const address& to) {
  std::vector<const char*> names{"client_encoding", "fallback_application_name"};
  std::vector<const char*> values{"UTF8", "holdfast"};
  for (const auto& [name, value] : to.parameters) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* const c = PQconnectStartParams(names.data(), values.data(), 0);
  PQsetErrorVerbosity(c, PQERRORS_VERBOSE);  // with the server's code (errors.cpp)
  return c;
}

// The same name always means the same text, even if clients share a server connection by mistake.
std::string name_of(std::string_view sql) {
  return "holdfast_" + std::to_string(std::hash<std::string_view>{}(sql));
}

}  // namespace

std::int64_t answer::number(int r, int c) const noexcept {
  return base::number_at_start<std::int64_t>(text(r, c), 0);
}

std::int64_t answer::changed() const noexcept {
  return base::number_at_start<std::int64_t>(PQcmdTuples(get()), 0);
}

// Prints nothing. An operator can end the server's wait for its standby (pg_cancel_backend). Then
// the server answers as if the standby had the commit, and only warns.
void wire::hear(void* self, const PGresult* said) {
  const char* const function = PQresultErrorField(said, PG_DIAG_SOURCE_FUNCTION);
  if (function == nullptr || std::string_view(function) != "SyncRepWaitForLSN") return;
  static_cast<wire*>(self)->unproven_ = true;
}

// ---- connecting

std::unique_ptr<wire> wire::begin_open(const address& to) {
  return std::unique_ptr<wire>(new wire(start(to)));
}

short wire::wants() const noexcept { return opening_ == PGRES_POLLING_WRITING ? POLLOUT : POLLIN; }

result<bool> wire::go_on_opening(boot_time whole_by) {
  if (opening_ != PGRES_POLLING_OK) {
    if (auto connected = connect(); !connected || !*connected) return connected;
  }
  if (!greeted_) {
    greeted_ = true;
    const auto asked = begin({"select pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(), "
                              "pg_catalog.current_setting('server_encoding'), "
                              "pg_catalog.date_part('microseconds', "
                              "pg_catalog.pg_postmaster_start_time())::bigint"},
                             whole_by);
    if (!asked) return asked.error();
  }
  if (!answered()) return false;
  const auto said = end(whole_by);
  if (!said) return said.error();
  if (auto good = look_at(said->front()); !good) return std::move(good.error());
  return true;
}

// libpq must be called only when its socket is ready.
result<bool> wire::connect() {
  while (PQstatus(connection_) != CONNECTION_BAD && opening_ != PGRES_POLLING_OK) {
    if (!wait_until_ready(fd(), wants(), boot_time::min())) return false;
    opening_ = PQconnectPoll(connection_);
    if (opening_ == PGRES_POLLING_FAILED) break;
  }
  if (PQstatus(connection_) != CONNECTION_OK) return connection_says(connection_, "connecting");
  PQsetnonblocking(connection_, 1);
  PQenterPipelineMode(connection_);
  return true;
}

status wire::look_at(const answer& a) {
  if (a.text(0, 1) == "t") {
    return only_reads_here(connection_,
                           "the server is a standby: name the primary, or a list of hosts with "
                           "?target_session_attrs=read-write");
  }
  if (a.text(0, 2) != "UTF8") {
    return failure{errc::unsupported, "the database's encoding is " + std::string(a.text(0, 2)) +
                                          ": names of locks are UTF-8; use a database in UTF8"};
  }
  pooled_ = a.number(0, 0) != PQbackendPID(connection_);
  server_ = a.number(0, 3);
  return done{};
}

// ---- asking

// Checks alive() first: libpq would go on using a connection with unread answers.
result<std::vector<answer>> wire::ask(std::span<const statement> all, boot_time deadline) {
  did_nothing_ = false;
  if (!alive()) return broken();
  const sql::whole_or_broken guard(broken_);
  expected to_come;
  bool sent = true;
  for (const statement& s : all) {
    sent = sent && (pooled_ ? send(s, to_come) : send_prepared(s, to_come));
  }
  if (!sent || PQpipelineSync(connection_) != 1) return broken();
  return receive(to_come, deadline);
}

status wire::begin(const statement& s, boot_time deadline) {
  const sql::whole_or_broken guard(broken_);
  begun_.clear();
  if (broken_ || !send(s, begun_) || PQpipelineSync(connection_) != 1) return broken();
  for (int unsent = PQflush(connection_); unsent != 0; unsent = PQflush(connection_)) {
    if (unsent < 0) return broken();
    if (!wait_until_ready(fd(), POLLOUT, deadline)) return broken();
  }
  return done{};
}

bool wire::answered() noexcept {
  if (!read()) broken_ = true;
  return broken_ || PQisBusy(connection_) == 0;
}

result<std::vector<answer>> wire::end(boot_time deadline) {
  if (broken_) return broken();
  const sql::whole_or_broken guard(broken_);
  return receive(begun_, deadline);
}

bool wire::send(const statement& s, expected& to_come) {
  std::vector<const char*> values;
  values.reserve(s.parameters.size());
  for (const auto& p : s.parameters) values.push_back(p ? p->c_str() : nullptr);
  to_come.push_back(nullptr);
  return PQsendQueryParams(connection_, s.sql, static_cast<int>(values.size()), nullptr,
                           values.data(), nullptr, nullptr, 0) == 1;
}

bool wire::send_prepared(const statement& s, expected& to_come) {
  const std::string name = name_of(s.sql);
  if (!prepared_.contains(s.sql)) {
    if (PQsendPrepare(connection_, name.c_str(), s.sql, 0, nullptr) != 1) return false;
    prepared_.emplace(s.sql);
    to_come.push_back(s.sql);
  }
  std::vector<const char*> values;
  values.reserve(s.parameters.size());
  for (const auto& p : s.parameters) values.push_back(p ? p->c_str() : nullptr);
  to_come.push_back(nullptr);
  return PQsendQueryPrepared(connection_, name.c_str(), static_cast<int>(values.size()),
                             values.data(), nullptr, nullptr, 0) == 1;
}

// Each command has one result and then a null; the sync has the last result. After the first
// failure the remaining results are reported as aborted.
result<std::vector<answer>> wire::receive(const expected& to_come, boot_time deadline) {
  std::vector<answer> answers;
  std::optional<failure> wrong;
  for (auto next = to_come.begin(); !broken_;) {
    if (auto there = wait_for_result(deadline); !there) return std::move(there.error());
    answer one(PQgetResult(connection_));
    const auto how = PQresultStatus(one.get());
    if (one.get() == nullptr && PQstatus(connection_) != CONNECTION_OK) return broken();
    if (one.get() == nullptr) continue;
    if (how == PGRES_PIPELINE_SYNC) break;
    const char* const preparing = next == to_come.end() ? nullptr : *next++;
    if (how != PGRES_COMMAND_OK && how != PGRES_TUPLES_OK) {
      auto why = refused(one.get(), preparing);
      if (!wrong) wrong = std::move(why);
    } else if (preparing == nullptr) {
      answers.push_back(std::move(one));
    }
  }
  if (unproven_) return not_at_a_standby();
  if (wrong) return std::move(*wrong);
  return answers;
}

failure wire::refused(const PGresult* answer, const char* preparing) {
  if (preparing != nullptr) prepared_.erase(preparing);
  if (PQresultStatus(answer) == PGRES_PIPELINE_ABORTED) return {};
  broken_ = broken_ || ends_connection(sqlstate_of(answer));
  did_nothing_ = did_nothing_ || proves_that_nothing_was_done(answer);
  return server_says(answer);
}

status wire::wait_for_result(boot_time deadline) {
  while (PQisBusy(connection_) == 1) {
    const int unsent = PQflush(connection_);
    const auto events = static_cast<short>(unsent == 1 ? POLLIN | POLLOUT : POLLIN);
    if (unsent < 0) return broken();
    if (!wait_until_ready(fd(), events, deadline)) {
      broken_ = true;
      return no_answer();
    }
    if (!read()) return broken();
  }
  return done{};
}

// The next connection finds the change, and writes it again.
failure wire::not_at_a_standby() {
  broken_ = true;
  return {errc::unavailable,
          "an operator ended the server's wait for its standby, which may lack the change"};
}

failure wire::broken() {
  broken_ = true;
  failure f = connection_says(connection_, "the connection broke");
  f.code = errc::unavailable;
  return f;
}

bool wire::usable() const noexcept {
  return !broken_ && PQstatus(connection_) == CONNECTION_OK &&
         PQtransactionStatus(connection_) == PQTRANS_IDLE;
}

std::optional<std::string> wire::next_notification() {
  PGnotify* const n = PQnotifies(connection_);
  if (n == nullptr) return std::nullopt;
  std::string payload = n->extra;
  PQfreemem(n);
  return payload;
}

}  // namespace holdfast::store::postgres
