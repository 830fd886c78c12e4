#include "store/postgres/wire.hpp"

#include <poll.h>

#include <algorithm>
#include <charconv>

#include "store/postgres/errors.hpp"

namespace holdfast::store::postgres {

namespace {

using namespace std::chrono_literals;

enum class waited { ready, woken, late };

waited wait_until_ready(int fd, short events, boot_time deadline, int wake_fd = -1) {
  const auto left = std::clamp<std::chrono::nanoseconds>(deadline - boot_clock::now(), 0ns, 24h);
  const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  pollfd both[] = {{fd, events, 0}, {wake_fd, POLLIN, 0}};
  const int n = ::ppoll(both, 2, &timeout, nullptr);
  if (n > 0 && both[0].revents == 0) return waited::woken;
  return n > 0 ? waited::ready : waited::late;
}

failure no_answer() {
  return {errc::unavailable,
          "the server did not answer in time; is it stopped, the network cut, or a row locked by "
          "somebody else (pg_stat_activity)?"};
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
  return PQconnectStartParams(names.data(), values.data(), 0);
}

// The same name means the same text to everybody who shares a server's connection by mistake.
std::string name_of(std::string_view sql) {
  return "holdfast_" + std::to_string(std::hash<std::string_view>{}(sql));
}

}  // namespace

std::int64_t answer::number(int r, int c) const noexcept {
  const auto digits = text(r, c);
  std::int64_t n = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return n;
}

// ---- connecting
// ----------------------------------------------------------------------------------

result<std::unique_ptr<wire>> wire::open(const address& to, boot_time deadline, int wake_fd) {
  std::unique_ptr<wire> made{new wire(start(to))};
  if (auto ok = made->connect(deadline, wake_fd); !ok) return std::move(ok.error());
  if (auto ok = made->greet(deadline); !ok) return std::move(ok.error());
  return made;
}

status wire::connect(boot_time deadline, int wake_fd) {
  auto next = PGRES_POLLING_WRITING;
  while (PQstatus(connection_) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (wait_until_ready(fd(), events, deadline, wake_fd) != waited::ready) {
      return failure{errc::unavailable, "the server could not be reached in connect_timeout"};
    }
    next = PQconnectPoll(connection_);
    if (next == PGRES_POLLING_FAILED) break;
  }
  if (PQstatus(connection_) != CONNECTION_OK) return connection_says(connection_, "connecting");
  PQsetNoticeReceiver(connection_, [](void*, const PGresult*) {}, nullptr);  // else it prints them
  PQsetnonblocking(connection_, 1);
  PQenterPipelineMode(connection_);
  return done{};
}

status wire::greet(boot_time deadline) {
  static const std::string sql =
      "select pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(), "
      "pg_catalog.current_setting('server_encoding')";
  const auto got = ask({{sql}}, deadline);
  if (!got) return got.error();
  const answer& a = got->front();
  if (a.text(0, 1) == "t") {
    return failure{errc::read_only,
                   "the server is a standby: name the primary, or a list of hosts with "
                   "?target_session_attrs=read-write"};
  }
  if (a.text(0, 2) != "UTF8") {
    return failure{errc::unsupported, "the database's encoding is " + std::string(a.text(0, 2)) +
                                          ": names of locks are UTF-8; use a database in UTF8"};
  }
  pooled_ = a.number(0, 0) != PQbackendPID(connection_);
  return done{};
}

// ---- asking
// --------------------------------------------------------------------------------------

result<std::vector<answer>> wire::ask(std::span<const statement> all, boot_time deadline) {
  expected to_come;
  bool sent = true;
  for (const statement& s : all) {
    sent = sent && (pooled_ ? send(s, to_come) : send_prepared(s, to_come));
  }
  if (!sent || PQpipelineSync(connection_) != 1) return broken();
  return receive(to_come, deadline);
}

status wire::begin(const statement& s, boot_time deadline) {
  begun_.clear();
  if (!send(s, begun_) || PQpipelineSync(connection_) != 1) return broken();
  for (int unsent = PQflush(connection_); unsent != 0; unsent = PQflush(connection_)) {
    if (unsent < 0) return broken();
    if (wait_until_ready(fd(), POLLOUT, deadline) == waited::late) return broken();
  }
  return done{};
}

bool wire::answered() noexcept {
  if (!read()) broken_ = true;
  return broken_ || PQisBusy(connection_) == 0;
}

result<std::vector<answer>> wire::end(boot_time deadline) {
  if (broken_) return broken();
  return receive(begun_, deadline);
}

bool wire::send(const statement& s, expected& to_come) {
  std::vector<const char*> values;
  for (const auto& p : s.parameters) values.push_back(p ? p->c_str() : nullptr);
  to_come.push_back(nullptr);
  return PQsendQueryParams(connection_, s.sql.c_str(), static_cast<int>(values.size()), nullptr,
                           values.data(), nullptr, nullptr, 0) == 1;
}

bool wire::send_prepared(const statement& s, expected& to_come) {
  const std::string name = name_of(s.sql);
  if (!prepared_.contains(s.sql)) {
    if (PQsendPrepare(connection_, name.c_str(), s.sql.c_str(), 0, nullptr) != 1) return false;
    prepared_.insert(s.sql);
    to_come.push_back(&s.sql);
  }
  std::vector<const char*> values;
  for (const auto& p : s.parameters) values.push_back(p ? p->c_str() : nullptr);
  to_come.push_back(nullptr);
  return PQsendQueryPrepared(connection_, name.c_str(), static_cast<int>(values.size()),
                             values.data(), nullptr, nullptr, 0) == 1;
}

// Each command has one result and then a null; the end is the sync's. After the first failure the
// rest is said to be aborted.
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
    const std::string* const preparing = next == to_come.end() ? nullptr : *next++;
    if (how != PGRES_COMMAND_OK && how != PGRES_TUPLES_OK) {
      auto why = refused(one.get(), preparing);
      if (!wrong) wrong = std::move(why);
    } else if (preparing == nullptr) {
      answers.push_back(std::move(one));
    }
  }
  if (wrong) return std::move(*wrong);
  return answers;
}

failure wire::refused(const PGresult* answer, const std::string* preparing) {
  if (preparing != nullptr) prepared_.erase(*preparing);
  if (PQresultStatus(answer) == PGRES_PIPELINE_ABORTED) return {};
  broken_ = broken_ || ends_connection(sqlstate_of(answer));
  return server_says(answer);
}

status wire::wait_for_result(boot_time deadline) {
  while (PQisBusy(connection_) == 1) {
    const int unsent = PQflush(connection_);
    const auto events = static_cast<short>(unsent == 1 ? POLLIN | POLLOUT : POLLIN);
    if (unsent < 0) return broken();
    const auto how = wait_until_ready(fd(), events, deadline);
    if (how == waited::late) {
      broken_ = true;
      return no_answer();
    }
    if (!read()) return broken();
  }
  return done{};
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
