// The functions of libpq that the PostgreSQL driver calls, over the simulated network. This
// program's own definitions come before those of the library.
#ifdef HOLDFAST_WITH_SQL
#include <libpq-fe.h>
#include <poll.h>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "simulation/descriptors.hpp"
#include "simulation/sql_server.hpp"

using simulation::sql_answer;
using simulation::sql_client;
using simulation::sql_column;
using simulation::sql_server;
using simulation::sql_text;
using simulation::sql_value;
using simulation::world;

struct pg_result {
  ExecStatusType status = PGRES_COMMAND_OK;
  sql_answer of{};
  std::vector<std::vector<std::string>> cells{};
  std::string changed{};  ///< the number of rows
};

struct pg_conn final : simulation::descriptor {
  explicit pg_conn(std::shared_ptr<sql_client> c)
      : client(std::move(c)), number(simulation::open_descriptor(*this)) {}
  ~pg_conn() override { simulation::close_descriptor(number); }

  short ready(short events) const noexcept override {
    if (!client->connected() && !client->refused() && !client->broken()) {
      return static_cast<short>(begun ? 0 : events & POLLOUT);
    }
    const bool input = (begun && !polled) || client->has_input() || client->refused();
    return static_cast<short>(events & (input ? POLLIN | POLLOUT : POLLOUT));
  }
  void wait_here(simulation::fiber& who) override { client->wait_here(who); }
  void leave_here(const simulation::fiber& who) noexcept override { client->leave_here(who); }

  bool bad() const noexcept { return client->refused() || (client->broken() && !unread()); }
  bool unread() const noexcept {
    return !client->sent.empty() && client->sent.front()->over && !client->sent.front()->failed;
  }

  std::shared_ptr<sql_client> client;
  const int number;
  bool begun = false;   ///< has begun to connect
  bool polled = false;  ///< the connection was seen to be established
  std::map<std::string, std::string> prepared{};
  /// Requests sent and not yet synced: a list of statements, empty for a request that only
  /// prepares.
  std::vector<sql_text> unsent{};
  std::deque<std::vector<bool>> expected{};  ///< of each round trip: which are statements
  std::vector<bool> expects{};
  std::deque<std::unique_ptr<pg_result>> results{};  ///< null: the end
  std::deque<std::string> notes{};
  bool in_transaction = false;
};

namespace {

std::unique_ptr<pg_result> result_of(ExecStatusType status) {
  auto r = std::make_unique<pg_result>();
  r->status = status;
  return r;
}

std::unique_ptr<pg_result> result_of(sql_answer a) {
  auto r = result_of(!a.state.empty()    ? PGRES_FATAL_ERROR
                     : a.result.has_rows ? PGRES_TUPLES_OK
                                         : PGRES_COMMAND_OK);
  for (const auto& row : a.result.rows) {
    auto& texts = r->cells.emplace_back();
    for (const auto& v : row) texts.push_back(v.as_text());
  }
  r->changed = std::to_string(a.result.affected);
  r->of = std::move(a);
  return r;
}

// After a command's first failure nothing more is carried out.
void take_results(pg_conn& c, simulation::sql_exchange& e) {
  std::size_t next = 0;
  bool aborted = false;
  for (const bool is_statement : c.expected.front()) {
    if (aborted) {
      c.results.push_back(result_of(PGRES_PIPELINE_ABORTED));
    } else if (!is_statement) {
      c.results.push_back(result_of(PGRES_COMMAND_OK));
    } else {
      c.results.push_back(result_of(std::move(e.answers.at(next++))));
      aborted = c.results.back()->status == PGRES_FATAL_ERROR;
    }
    c.results.push_back(nullptr);
  }
  c.results.push_back(result_of(PGRES_PIPELINE_SYNC));
  c.expected.pop_front();
  c.in_transaction = e.in_transaction;
}

std::vector<sql_value> values_of(int count, const char* const* texts) {
  std::vector<sql_value> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(texts[i] == nullptr ? sql_value{} : sql_value::of(std::string(texts[i])));
  }
  return all;
}

int can_send(pg_conn& c) {
  if (!c.bad()) return 1;
  if (c.client->broken() && c.client->sent.empty()) c.client->found_broken();
  return 0;
}

}  // namespace

extern "C" {

PGconn* PQconnectStartParams(const char* const* names, const char* const* values, int) {
  std::string host;
  for (; *names != nullptr; ++names, ++values) {
    if (std::string_view(*names) == "host") host = *values;
  }
  return new pg_conn(sql_server::named(host).open(*world::self()->of));
}

PostgresPollingStatusType PQconnectPoll(PGconn* c) {
  c->begun = true;
  if (c->client->refused() || c->client->broken()) return PGRES_POLLING_FAILED;
  if (!c->client->connected()) return PGRES_POLLING_READING;
  c->polled = true;
  return PGRES_POLLING_OK;
}

void PQfinish(PGconn* c) { delete c; }

ConnStatusType PQstatus(const PGconn* c) {
  if (c->bad()) return CONNECTION_BAD;
  return c->polled ? CONNECTION_OK : CONNECTION_STARTED;
}

PGTransactionStatusType PQtransactionStatus(const PGconn* c) {
  if (c->bad()) return PQTRANS_UNKNOWN;
  if (!c->client->sent.empty() || !c->results.empty()) return PQTRANS_ACTIVE;
  return c->in_transaction ? PQTRANS_INTRANS : PQTRANS_IDLE;
}

int PQsocket(const PGconn* c) { return c->number; }
int PQbackendPID(const PGconn* c) { return c->client->number(); }
char* PQerrorMessage(const PGconn*) { return const_cast<char*>("simulated: it is broken"); }
PQconninfoOption* PQconninfo(PGconn*) { return nullptr; }  // this client has one host only
PQconninfoOption* PQconndefaults() { return nullptr; }
char* PQhost(const PGconn*) { return const_cast<char*>(""); }
char* PQport(const PGconn*) { return const_cast<char*>(""); }
void PQconninfoFree(PQconninfoOption*) {}
int PQsetnonblocking(PGconn*, int) { return 0; }
PGVerbosity PQsetErrorVerbosity(PGconn*, PGVerbosity v) { return v; }
int PQenterPipelineMode(PGconn*) { return 1; }
PQnoticeReceiver PQsetNoticeReceiver(PGconn*, PQnoticeReceiver, void*) { return nullptr; }

int PQsendQueryParams(PGconn* c, const char* text, int count, const Oid*, const char* const* values,
                      const int*, const int*, int) {
  c->unsent.push_back({text, values_of(count, values)});
  c->expects.push_back(true);
  return can_send(*c);
}

int PQsendPrepare(PGconn* c, const char* name, const char* text, int, const Oid*) {
  c->prepared[name] = text;
  c->expects.push_back(false);
  return can_send(*c);
}

int PQsendQueryPrepared(PGconn* c, const char* name, int count, const char* const* values,
                        const int*, const int*, int) {
  c->unsent.push_back({c->prepared.at(name), values_of(count, values)});
  c->expects.push_back(true);
  return can_send(*c);
}

int PQpipelineSync(PGconn* c) {
  if (c->bad()) return 0;
  c->expected.push_back(std::move(c->expects));
  c->expects.clear();
  (void)c->client->send(std::move(c->unsent));
  c->unsent.clear();
  return 1;
}

int PQflush(PGconn* c) { return c->bad() ? -1 : 0; }
int PQisBusy(PGconn* c) { return c->results.empty() ? 1 : 0; }

int PQconsumeInput(PGconn* c) {
  while (c->unread()) {
    take_results(*c, *c->client->sent.front());
    c->client->sent.pop_front();
  }
  for (auto& line : c->client->lines) c->notes.push_back(std::move(line));
  c->client->lines.clear();
  return c->bad() ? 0 : 1;
}

PGresult* PQgetResult(PGconn* c) {
  if (c->results.empty()) return nullptr;
  auto first = std::move(c->results.front());
  c->results.pop_front();
  return first.release();
}

PGnotify* PQnotifies(PGconn* c) {
  if (c->notes.empty()) return nullptr;
  const std::string text = std::move(c->notes.front());
  c->notes.pop_front();
  auto* const n = static_cast<PGnotify*>(std::calloc(1, sizeof(PGnotify) + text.size() + 1));
  n->extra = reinterpret_cast<char*>(n + 1);
  std::memcpy(n->extra, text.c_str(), text.size() + 1);
  return n;
}

void PQfreemem(void* p) { std::free(p); }
void PQclear(PGresult* r) { delete r; }
ExecStatusType PQresultStatus(const PGresult* r) {
  return r == nullptr ? PGRES_FATAL_ERROR : r->status;
}
char* PQresultErrorMessage(const PGresult* r) { return const_cast<char*>(r->of.said.c_str()); }
char* PQresultErrorField(const PGresult* r, int which) {
  if (r->of.state.empty()) return nullptr;
  if (which == PG_DIAG_SEVERITY_NONLOCALIZED) return const_cast<char*>("ERROR");
  return const_cast<char*>(which == PG_DIAG_SQLSTATE ? r->of.state.c_str() : r->of.said.c_str());
}
char* PQcmdTuples(PGresult* r) { return r->changed.data(); }
int PQntuples(const PGresult* r) { return static_cast<int>(r->cells.size()); }
char* PQgetvalue(const PGresult* r, int row, int column) {
  return const_cast<char*>(
      r->cells.at(static_cast<std::size_t>(row)).at(static_cast<std::size_t>(column)).c_str());
}
int PQgetlength(const PGresult* r, int row, int column) {
  return static_cast<int>(std::strlen(PQgetvalue(r, row, column)));
}
int PQgetisnull(const PGresult* r, int row, int column) {
  return r->of.result.rows.at(static_cast<std::size_t>(row))
                 .at(static_cast<std::size_t>(column))
                 .null()
             ? 1
             : 0;
}
// The types of the one result whose types the driver reads: format, name, version, record.
Oid PQftype(const PGresult*, int column) {
  constexpr Oid types[] = {23, 25, 20, 114};
  return types[column];
}

}  // extern "C"
#endif
