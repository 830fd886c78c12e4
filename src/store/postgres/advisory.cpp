#include "store/postgres/advisory.hpp"

#include "base/sha256.hpp"
#include "store/postgres/errors.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/schema.hpp"

namespace holdfast::store::postgres {

namespace {

using sql::lock_mode;
using moment_at = std::optional<std::int64_t>;

std::string call(const std::string& function) { return "pg_catalog." + function + "($1::bigint)"; }

/// True for a standby, too.
constexpr const char* only_reads = "pg_catalog.current_setting('transaction_read_only')";

std::string moment_if(const std::string& had) {
  return "select case when " + had + " then " + server_clock + " end, " + only_reads;
}

struct texts {
  const std::string try_exclusive = moment_if(call("pg_try_advisory_lock"));
  const std::string try_shared = moment_if(call("pg_try_advisory_lock_shared"));
  const std::string unlock_exclusive = "select " + call("pg_advisory_unlock");
  const std::string unlock_shared = "select " + call("pg_advisory_unlock_shared");
  const std::string wait_exclusive = "select " + call("pg_advisory_lock") + ", " + server_clock;
  const std::string wait_shared = "select " + call("pg_advisory_lock_shared") + ", " + server_clock;
  const std::string raise = "select case when " + call("pg_try_advisory_lock") +
                            " then case when " + call("pg_advisory_unlock_shared") + " then " +
                            server_clock + " end end, " + only_reads;
  // The server grants the first half at once to the holder of the exclusive lock, ahead of all
  // waiters. (It refuses a mere try while a writer waits.) Others wait until the second half is
  // done.
  const std::string lower = "select case when " + call("pg_advisory_lock_shared") +
                            " is not null then case when " + call("pg_advisory_unlock") + " then " +
                            server_clock + " end end, " + only_reads;
  const std::string interrupt = "select pg_catalog.pg_cancel_backend($1::int)";
  const std::string ping = std::string("select ") + only_reads;
  const std::string users =
      std::string(
          "select l.pid, l.granted, l.mode like 'Share%', coalesce(pg_catalog.host(a.client_addr), "
          "''),"
          " coalesce(a.application_name, '') from pg_catalog.pg_locks l "
          "left join pg_catalog.pg_stat_activity a on a.pid = l.pid "
          "where l.locktype = 'advisory' and l.objsubid = 1 and l.database = (select oid from "
          "pg_catalog.pg_database where datname = pg_catalog.current_database()) and "
          "(l.classid::bigint << 32 | l.objid::bigint) = $1::bigint") +
      " order by l.granted desc, l.waitstart";
};

const texts& sql_of() {
  static const auto* const all = new texts;  // a session may end after all static objects
  return *all;
}

std::string one_word(std::string text) {
  for (char& c : text) c = c == ' ' ? '_' : c;
  return text;
}

/// Does nothing if the server has no such setting.
constexpr const char* set_one =
    "select pg_catalog.set_config(name, $2, false) from pg_catalog.pg_settings where name = $1";

}  // namespace

result<std::unique_ptr<sql::lock_link>> advisory_link::open(const postgres_options& o) {
  const boot_time whole_by = boot_clock::now() + o.connect_timeout;
  auto made = postgres::connect(o.server, whole_by);
  if (!made) return std::move(made.error());
  if ((*made)->pooled()) {
    return failure{
        errc::unsupported,
        "there is a pooler before the server, and with mode=session another client would receive "
        "the connection and its locks: name the server itself, or use mode=lease"};
  }
  std::unique_ptr<advisory_link> link{new advisory_link(std::move(*made), o)};
  if (auto ok = link->set_up(o, whole_by); !ok) return std::move(ok.error());
  return std::unique_ptr<sql::lock_link>(std::move(link));
}

// A user may have set any of them to a value that would end a wait, or a connection with a lock.
status advisory_link::set_up(const postgres_options& o, boot_time whole_by) {
  const std::string silence = std::to_string(o.silence.count());
  const auto said = wire_->ask({{sql_of().ping},
                                {set_one, {"lock_timeout", "0"}},
                                {set_one, {"statement_timeout", "0"}},
                                {set_one, {"transaction_timeout", "0"}},  // from PostgreSQL 17 on
                                {set_one, {"search_path", "pg_catalog"}},
                                {set_one, {"idle_session_timeout", silence}},
                                {set_one, {"client_connection_check_interval", silence}}},
                               whole_by);
  return said ? leave_if_it_only_reads(said->front(), 0) : status(said.error());
}

status advisory_link::leave_if_it_only_reads(const answer& a, int column) {
  if (a.text(0, column) != "on") return done{};
  drop();
  return takes_no_writes("transaction_read_only is on");
}

// The hash costs this process less than a microsecond, but the server ten.
std::string advisory_link::key(std::string_view name) const {
  const auto hash = base::sha256(scope_ + std::string(name));
  return std::to_string(static_cast<std::int64_t>(std::uint64_t{hash[0]} << 32 | hash[1]));
}

result<moment_at> advisory_link::moment(const std::string& text, std::string_view name) {
  const auto got = wire_->ask({{text, {key(name)}}}, deadline());
  if (!got) return got.error();
  const answer& a = got->front();
  if (auto ok = leave_if_it_only_reads(a, 1); !ok) return std::move(ok.error());
  return a.is_null(0, 0) ? moment_at() : moment_at(a.number(0, 0));
}

result<moment_at> advisory_link::try_lock(std::string_view name, lock_mode mode) {
  return moment(mode == lock_mode::shared ? sql_of().try_shared : sql_of().try_exclusive, name);
}

result<bool> advisory_link::unlock(std::string_view name, lock_mode mode) {
  const auto& text = mode == lock_mode::shared ? sql_of().unlock_shared : sql_of().unlock_exclusive;
  const auto got = wire_->ask({{text, {key(name)}}}, deadline());
  if (!got) return got.error();
  return got->front().text(0, 0) == "t";
}

result<moment_at> advisory_link::change(std::string_view name, lock_mode to) {
  return moment(to == lock_mode::shared ? sql_of().lower : sql_of().raise, name);
}

status advisory_link::begin(std::string_view name, lock_mode mode) {
  const auto& text = mode == lock_mode::shared ? sql_of().wait_shared : sql_of().wait_exclusive;
  return wire_->begin({text, {key(name)}}, deadline());
}

result<moment_at> advisory_link::end() {
  const auto got = wire_->end(deadline());
  if (!got) return got.error();
  return moment_at(got->front().number(0, 1));
}

status advisory_link::interrupt(const sql::lock_link& other) {
  const auto got = wire_->ask({{sql_of().interrupt, {std::to_string(other.id())}}}, deadline());
  return got ? status(done{}) : status(got.error());
}

status advisory_link::ping() {
  const auto got = wire_->ask({{sql_of().ping}}, deadline());
  return got ? leave_if_it_only_reads(got->front(), 0) : status(got.error());
}

result<std::vector<sql::lock_user>> advisory_link::users(std::string_view name) {
  const auto got = wire_->ask({{sql_of().users, {key(name)}}}, deadline());
  if (!got) return got.error();
  const answer& a = got->front();
  std::vector<sql::lock_user> all;
  all.reserve(static_cast<std::size_t>(a.rows()));
  for (int i = 0; i < a.rows(); ++i) {
    all.push_back({a.number(i, 0), a.text(i, 1) == "t", a.text(i, 2) == "t",
                   std::string(a.text(i, 3)), one_word(std::string(a.text(i, 4)))});
  }
  return all;
}

}  // namespace holdfast::store::postgres
