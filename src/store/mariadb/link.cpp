#include "store/mariadb/link.hpp"

#include <poll.h>

#include <algorithm>

#include "base/readiness.hpp"
#include "store/mariadb/errors.hpp"
#include "store/sql/whole_or_broken.hpp"

namespace holdfast::store::mariadb {

namespace {

// Null for a record that is too long, so that it does not leave the server.
std::string bounded(const std::string& record) {
  return "case when octet_length(" + record + ") <= " + std::to_string(sql::longest_read) +
         " then " + record + " end";
}

// A row that its own transaction has just created has no record yet.
std::string record_of(std::optional<std::string>& cell) {
  return !cell || *cell == "null" ? std::string() : std::move(*cell);
}

void set_text(MYSQL* c, mysql_option which, const std::string& value) {
  if (!value.empty()) mysql_optionsv(c, which, value.c_str());
}

unsigned whole_seconds(std::chrono::milliseconds d) {
  return static_cast<unsigned>((d.count() + 999) / 1000);
}

/// How long connecting may take.
struct connect_limit {
  connect_limit(std::chrono::milliseconds own, boot_time deadline)
      : began(boot_clock::now()), seconds(whole_seconds(own)), is_own(began + own <= deadline) {
    constexpr std::chrono::seconds least{1};
    const auto left = std::chrono::floor<std::chrono::seconds>(deadline - began);
    if (!is_own) seconds = static_cast<unsigned>(std::max(least, left).count());
  }
  bool cut_short() const {
    return !is_own && boot_clock::now() >= began + std::chrono::seconds(seconds);
  }

  boot_time began;
  unsigned seconds;
  bool is_own;
};

void set_up(MYSQL* c, const mariadb_options& o, unsigned connect) {
  const unsigned command = whole_seconds(o.command_timeout);
  mysql_optionsv(c, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
  mysql_optionsv(c, MYSQL_OPT_READ_TIMEOUT, &command);
  mysql_optionsv(c, MYSQL_OPT_WRITE_TIMEOUT, &command);
  mysql_optionsv(c, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  set_text(c, MYSQL_READ_DEFAULT_FILE, o.defaults_file);
  mysql_optionsv(c, MYSQL_READ_DEFAULT_GROUP, "holdfast");
  set_text(c, MYSQL_OPT_SSL_CA, o.ssl_ca);
  set_text(c, MYSQL_OPT_SSL_CERT, o.ssl_cert);
  set_text(c, MYSQL_OPT_SSL_KEY, o.ssl_key);
  const my_bool on = 1;
  if (o.tls != tls::as_configured) mysql_optionsv(c, MYSQL_OPT_SSL_ENFORCE, &on);
  if (o.tls == tls::verify) mysql_optionsv(c, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
  // Otherwise OpenSSL asks for the passphrase of a key at the terminal, and waits there without a
  // limit. An option file may have the right one.
  mysql_optionsv(c, MARIADB_OPT_TLS_PASSPHRASE, "");
}

// The library has preferred an option file to what the URL demands. And unless it checks the
// certificate, it goes on without TLS if the server has none.
status check_tls(MYSQL* c, const mariadb_options& o) {
  if (o.tls != tls::as_configured && mysql_get_ssl_cipher(c) == nullptr)
    return failure{errc::not_permitted, "the server has no TLS, and tls= demands it"};
  my_bool verifies = 0;
  const char* ca = nullptr;
  (void)mysql_get_optionv(c, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verifies);
  (void)mysql_get_optionv(c, MYSQL_OPT_SSL_CA, &ca);
  const bool other_ca = !o.ssl_ca.empty() && (ca == nullptr || o.ssl_ca != ca);
  if (!other_ca && (o.tls != tls::verify || verifies != 0)) return done{};
  return failure{errc::invalid_argument,
                 std::string("an option file sets ") +
                     (other_ca ? "ssl-ca" : "ssl-verify-server-cert") +
                     ", which the client library prefers to the URL: change the file, or name "
                     "another one by defaults_file="};
}

// Overrides the configuration of the server and the user. A wait for a lock on a row, or on the
// table (`lock tables`, a backup), ends at the server: a statement that is only given up here may
// still be carried out. And a program that is stopped in the middle of a transaction must not block
// all others (MySQL has no such limit). With completion_type=CHAIN each commit would begin another
// transaction, and what follows would never be committed. The settings with sql_ would refuse
// sweeps and reads, or cut lists of names. A server may ignore the client's character set, or have
// `set names` in init_connect: a record would come with other letters, and be written back so. Such
// a text may also stop the clock of the connection.
std::string session_settings(const std::string& patience) {
  const std::string which =
      "show variables where variable_name in ('hostname', 'port', 'server_id'); "
      "show status like 'wsrep_cluster_size'";
  const std::string no_chain = "completion_type = 0", no_limits = "sql_safe_updates = 0",
                    letters = "names utf8mb4", clock = "timestamp = default";
  return "set session transaction isolation level read committed; set " + letters +
         ", session autocommit = 1, session " + no_chain + ", session " + no_limits +
         ", session sql_big_selects = 1, session sql_select_limit = 18446744073709551615, "
         "session innodb_lock_wait_timeout = " +
         patience + ", session lock_wait_timeout = " + patience + " /*M! , session " + clock +
         ", session idle_transaction_timeout = " + patience +
         ", session idle_write_transaction_timeout = " + patience +
         ", session idle_readonly_transaction_timeout = " + patience + " */; " + which;
}

// Two servers differ in one of the three values: replication demands other ids.
std::int64_t server_in(const std::vector<link::answer>& settings) {
  std::string all;
  for (const auto& row : settings.at(settings.size() - 2).rows) all += row.at(1).value_or("") + ' ';
  return static_cast<std::int64_t>(std::hash<std::string>{}(all));
}

// Each node of a Galera cluster judges leases by its own clock, and has its own GET_LOCK.
status refuse_galera(const std::vector<link::answer>& settings) {
  const auto& rows = settings.back().rows;
  if (rows.empty() || number(rows[0].at(1)) == 0) return done{};
  return failure{errc::unsupported,
                 "the server is a node of a Galera cluster, whose nodes judge leases each by its "
                 "own clock and know nothing of each other's GET_LOCK: two could hold one lock. "
                 "Name a server outside such a cluster"};
}

/// The server has rolled back the whole transaction, in favour of another one.
constexpr unsigned deadlock = 1213;
/// "BIGINT value is out of range".
constexpr unsigned out_of_range = 1690;

// Nothing behind a failed statement is carried out, not even the commit: the greatest number plus 1
// overflows.
std::string fail_if(const std::string& condition) {
  return "select 9223372036854775807 + (" + condition + "); ";
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

// ---- one connection

result<std::unique_ptr<link>> link::open(const mariadb_options& o, const tables& t,
                                         boot_time deadline) {
  const connect_limit limit(o.connect_timeout, deadline);
  std::unique_ptr<link> made{new link(mysql_init(nullptr), t, o)};
  MYSQL* const c = made->connection_;
  set_up(c, o, limit.seconds);
  if (mysql_real_connect(c, or_null(o.host), or_null(o.user), or_null(o.password), nullptr, o.port,
                         or_null(o.socket), CLIENT_MULTI_STATEMENTS) == nullptr) {
    auto f = made->failed();
    if (!limit.cut_short()) return f.what.insert(0, "connecting: "), f;
    f.code = errc::timed_out;
    f.what = "the server could not be reached in the " + std::to_string(limit.seconds) +
             " s that were left of command_timeout: " + f.what;
    return f;
  }
  if (auto safe = check_tls(c, o); !safe) return std::move(safe.error());
  made->calls_.emplace(c);
  base::set_keepalive(made->fd(), sql::keepalive_of(o));
  const my_bool off =
      0;  // an option file may set "reconnect": the locks of mode=session would be lost unnoticed
  mysql_optionsv(c, MYSQL_OPT_RECONNECT, &off);
  const auto set = made->ask(session_settings(std::to_string(made->patience_)),
                             std::min(deadline, made->in_time()));
  if (!set) return set.error();
  if (auto alone = refuse_galera(*set); !alone) return std::move(alone.error());
  made->server_ = server_in(*set);
  return made;
}

link::~link() {
  prepared_.reset();
  mysql_close(connection_);
}

failure link::failed() { return failed(mysql_errno(connection_), mysql_error(connection_)); }

failure link::failed(unsigned number, std::string_view said) {
  const bool late = calls_ && calls_->late();
  broken_ = broken_ || late || ends_connection(number);
  did_nothing_ = !late && proves_that_nothing_was_done(number);
  // The client library reports it as a lost connection.
  return late ? no_answer() : server_says(number, said);
}

result<std::vector<link::answer>> link::ask(const std::string& text, boot_time deadline) {
  const sql::whole_or_broken guard(broken_);
  did_nothing_ = false;
  calls_->end_at(deadline);
  const int wrong = (*calls_)(mysql_real_query_start, mysql_real_query_cont, connection_,
                              text.data(), text.size());
  if (wrong != 0) return failed();
  auto all = take_answers();
  broken_ = broken_ || calls_->late();  // the last answer came with the deadline
  return all;
}

std::int64_t link::seconds_of(const mariadb_options& o) noexcept {
  return std::max<std::int64_t>(1, sql::patience_of(o).count() / 1000);
}

// A second at least. The whole patience if the request has just begun.
std::int64_t link::patience_until(boot_time deadline) const noexcept {
  const std::chrono::nanoseconds left = deadline - boot_clock::now();
  if (left > command_timeout_ / 16 * 15) return patience_;
  const auto part = std::chrono::floor<std::chrono::seconds>(left / 4 * 3).count();
  return std::clamp<std::int64_t>(part, 1, patience_);
}

// The server gives up waiting for a lock before the request gives up waiting for the answer.
result<std::vector<link::answer>> link::ask_for_locks(const std::string& text, boot_time deadline) {
  const auto patience = patience_until(deadline);
  if (patience == waits_for_) return ask(text, deadline);
  const auto seconds = std::to_string(patience);
  waits_for_ = 0;
  auto got = ask("set session innodb_lock_wait_timeout = " + seconds +
                     ", session lock_wait_timeout = " + seconds + ";" + text,
                 deadline);
  if (!got) return got;
  waits_for_ = patience;
  got->erase(got->begin());
  return got;
}

bool link::is_undone() noexcept { return mysql_errno(connection_) == deadlock; }

status link::begin(const std::string& text) {
  calls_->end_at(in_time());
  const int wrong = (*calls_)(mysql_send_query_start, mysql_send_query_cont, connection_,
                              text.data(), text.size());
  return wrong != 0 ? status(failed()) : done{};
}

bool link::answered() noexcept {
  return broken_ || base::wait_until_ready(fd(), POLLIN, boot_time::min());
}

result<std::vector<link::answer>> link::end() {
  const sql::whole_or_broken guard(broken_);
  calls_->end_at(in_time());
  const my_bool wrong =
      (*calls_)(mysql_read_query_result_start, mysql_read_query_result_cont, connection_);
  if (wrong != 0) return failed();
  return take_answers();
}

result<std::vector<link::answer>> link::take_answers() {
  std::vector<answer> all;
  int more = 0;  // positive: a failure, negative: no more
  while (more == 0) {
    if (auto taken = take_rows(all.emplace_back()); !taken) return std::move(taken.error());
    more = (*calls_)(mysql_next_result_start, mysql_next_result_cont, connection_);
  }
  if (more > 0) return failed();
  return all;
}

status link::take_rows(answer& into) {
  const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> rows(
      (*calls_)(mysql_store_result_start, mysql_store_result_cont, connection_),
      &mysql_free_result);
  if (!rows && mysql_field_count(connection_) != 0) return failed();
  into.affected = mysql_affected_rows(connection_);
  while (rows) {
    const MYSQL_ROW row = mysql_fetch_row(rows.get());
    if (row == nullptr) break;
    const unsigned long* const sizes = mysql_fetch_lengths(rows.get());
    cells& one = into.rows.emplace_back();
    for (unsigned i = 0; i < mysql_num_fields(rows.get()); ++i) {
      one.push_back(row[i] == nullptr ? std::optional<std::string>()
                                      : std::string(row[i], sizes[i]));
    }
  }
  return done{};
}

// ---- reading and replacing

std::string link::reading(std::string_view name) const {
  return "select r.version, " + bounded("r.record") + ", " + server_clock +
         ", m.fence_floor, m.format, " + takes_writes + " from " + tables_.meta + " m left join " +
         tables_.records + " r on r.name = " + hex(name);
}

result<sql::row> link::row_of(const answer& a) {
  const bool one = a.rows.size() == 1;
  if (one && number(a.rows[0][4]) > format_version) {
    return failure{errc::newer_format,
                   "the tables have been changed by a newer holdfast meanwhile: update this "
                   "program"};
  }
  if (!one || number(a.rows[0][4]) != format_version) {
    return failure{errc::foreign_data, "holdfast_meta is not as holdfast made it: it has one row"};
  }
  cells row = a.rows[0];
  only_reads_ = number(row[5]) == 0;
  const bool too_long = row[0] && !row[1];
  return sql::row{.there = row[0].has_value(),
                  .version = number(row[0]),
                  .record = record_of(row[1]),
                  .now_at = number(row[2]),
                  .fence_floor = number(row[3]),
                  .too_long = too_long};
}

result<std::vector<sql::row>> link::read(std::span<const std::string_view> names,
                                         boot_time deadline) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : ";") + reading(name);
  const auto got = ask(text, deadline);
  if (!got) return got.error();
  std::vector<sql::row> rows;
  for (const answer& a : *got) {
    auto one = row_of(a);
    if (!one) return std::move(one.error());
    rows.push_back(std::move(*one));
  }
  return rows;
}

std::string link::text_of(const sql::replacement& r) const {
  const std::string until = r.until_at ? std::to_string(*r.until_at) : "";
  if (!r.there) {
    const auto version = std::to_string(r.version);
    return "insert into " + tables_.records + " select " + hex(r.name) + ", " + version + ", " +
           hex(r.record) + " from " + tables_.meta + " where fence_floor <= " + version + " and " +
           takes_writes + not_after(until) +
           " lock in share mode on duplicate key update version = version";
  }
  const std::string name = hex(r.name), version = std::to_string(r.version);
  const std::string now = r.assumed_now ? std::to_string(*r.assumed_now) : "";
  return update_of(tables_, hex(r.record), name, version, now, until);
}

result<std::vector<sql::replaced>> link::replace(std::span<const sql::replacement> all,
                                                 boot_time deadline) {
  if (only_reads_) return leave();
  const auto& first = all.front();
  const bool guess = all.size() == 1 && first.there && first.assumed_now;
  if (guess && prepared_ && patience_until(deadline) == waits_for_) {
    calls_->end_at(deadline);
    if (const auto affected = prepared_->run(first, *calls_)) {
      return std::vector<sql::replaced>{{*affected == 1, first.version + 1, 0}};
    }
    if (!prepared_->forgotten()) return failed(prepared_->error(), prepared_->said());
    prepared_.reset();
  }
  const bool several = all.size() > 1;
  const bool makes = std::any_of(all.begin(), all.end(), [](const auto& r) { return !r.there; });
  std::string text = !several ? "" : makes ? beginning() : "start transaction";
  for (const auto& r : all) text += (text.empty() ? "" : ";") + text_of(r);
  in_transaction_ = several;
  const auto got = ask_for_locks(several ? text + ";commit" : text, deadline);
  in_transaction_ = several && !got && !is_undone();
  if (!got) return got.error();
  std::vector<sql::replaced> outcomes;
  const std::size_t before = !several ? 0 : makes ? 2 : 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool there = (*got)[before + i].affected == 1;
    outcomes.push_back({there, all[i].there ? all[i].version + 1 : all[i].version, 0});
  }
  // Many sessions guess only once.
  if (guess && !prepared_ && guesses_ < 2) {
    ++guesses_;
    if (guesses_ == 2) prepared_ = prepared_update::make(connection_, *calls_, tables_);
    broken_ = broken_ || calls_->late();
  }
  return outcomes;
}

// Locks the floor before rows that may be created, as a sweep does that raises it: so they never
// wait for each other, and the floor stays.
std::string link::beginning() const {
  return "start transaction;select 1 from " + tables_.meta + " lock in share mode";
}

result<std::vector<sql::row>> link::lock(std::span<const std::string_view> names,
                                         boot_time deadline) {
  std::string text = beginning();
  for (const auto name : names) {
    text += "; insert into " + tables_.records + " select " + hex(name) + ", greatest(" +
            server_clock + ", fence_floor), 'null' from " + tables_.meta +
            " on duplicate key update version = version; select version, " + bounded("record") +
            ", " + server_clock + ", (select fence_floor from " + tables_.meta +
            "), (select format from " + tables_.meta + "), " + takes_writes + " from " +
            tables_.records + " where name = " + hex(name) + " for update";
  }
  in_transaction_ = true;
  const auto got = ask_for_locks(text, deadline);
  in_transaction_ = got || !is_undone();
  if (!got) return got.error();
  std::vector<sql::row> rows;
  rows.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto one = row_of((*got)[2 * i + 3]);
    if (!one) return std::move(one.error());
    rows.push_back(std::move(*one));
  }
  if (only_reads_) return leave();
  return rows;
}

status link::unlock(std::span<const sql::rewrite> all, std::int64_t until_at, boot_time deadline) {
  std::string text;
  if (!all.empty()) {
    const std::string late = std::string(server_clock) + " > " + std::to_string(until_at);
    text = fail_if(late + " or not (" + takes_writes + ")");
  }
  for (const auto& [name, record] : all) {
    const std::string where = " where name = " + hex(name) + "; ";
    text += record.empty() ? "delete from " + tables_.records + where
                           : "update " + tables_.records +
                                 " set version = version + 1, record = " + hex(record) + where;
  }
  const auto got = ask(text + (all.empty() ? "rollback" : "commit"), deadline);
  if (!got) {
    // If no time is left to ask, the request came late.
    const bool on_purpose = mysql_errno(connection_) == out_of_range;
    auto writes = on_purpose ? must_take_writes(deadline) : done{};
    return !writes && writes.error().code == errc::read_only ? writes : status(got.error());
  }
  in_transaction_ = false;
  return done{};
}

// Another server may be primary now, and a new connection may lead there.
failure link::leave() {
  broken_ = true;
  return takes_no_writes("it is read_only");
}

status link::must_take_writes(boot_time deadline) {
  const auto got = ask(std::string("select ") + takes_writes, deadline);
  if (!got) return got.error();
  return number(got->front().rows.at(0).at(0)) == 1 ? status(done{}) : status(leave());
}

// ---- the rest

status link::sweep(std::span<const std::string> names, boot_time deadline) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ",") + hex(name);
  const std::string free = " where name in (" + list +
                           ") and json_value(record, '$[2]') = '0' and json_value(record, '$[3]') "
                           "regexp '^[0-9]{1,18}$' and json_value(record, '$[1]') not in ('latch', "
                           "'rate_limiter', 'election')";
  in_transaction_ = true;
  // A session that waits for the row meanwhile finds the floor raised.
  const auto got =
      ask_for_locks("start transaction; " + fail_if(std::string("not (") + takes_writes + ")") +
                        "update " + tables_.meta +
                        " set fence_floor = greatest(fence_floor, coalesce((select max(greatest("
                        "cast(json_value(record, '$[3]') as unsigned), version) + 1) from " +
                        tables_.records + free + " for update), 0)); delete from " +
                        tables_.records + free + "; commit",
                    deadline);
  if (!got) return got.error();
  in_transaction_ = false;
  return done{};
}

result<std::vector<state_store::entry>> link::entries(boot_time deadline) {
  return entries_that({}, {}, deadline);
}

result<std::vector<state_store::entry>> link::entries_behind(std::string_view name,
                                                             std::size_t most, boot_time deadline) {
  return entries_that(" where name > " + hex(name), " limit " + std::to_string(most), deadline);
}

result<std::vector<state_store::entry>> link::entries_that(const std::string& are,
                                                           const std::string& limit,
                                                           boot_time deadline) {
  auto got = ask("select name, coalesce(" + bounded("record") + ", '" + sql::unread_record +
                     "') from " + tables_.records + are + " order by name" + limit,
                 deadline);
  if (!got) return std::move(got.error());
  std::vector<state_store::entry> all;
  for (cells& row : got->front().rows) all.push_back({*row[0], record_of(row[1])});
  return all;
}

// Selects all columns: the table may have no such column.
result<store::facts> link::facts(boot_time deadline) {
  auto got = ask(
      "show global variables where variable_name in ('version', 'innodb_flush_log_at_trx_commit', "
      "'sync_binlog', 'log_bin', 'read_only', 'rpl_semi_sync_master_enabled', 'max_connections')",
      deadline);
  if (!got) return std::move(got.error());
  store::facts found;
  for (auto& row : got->front().rows) {
    if (row.size() < 2) continue;
    found.push_back({{}, row[0].value_or(""), row[1].value_or("")});
  }
  // Sweeps need these rights. No caller waits for a sweep, so no error reports a missing right.
  // EXPLAIN needs the rights of the explained statement, and changes nothing.
  const std::pair<const char*, std::string> of_sweeps[]{
      {"delete on holdfast_records", "delete from " + tables_.records},
      {"update on holdfast_meta", "update " + tables_.meta + " set fence_floor = fence_floor"}};
  for (const auto& [right, statement] : of_sweeps) {
    const auto may = ask("explain " + statement + " where false", deadline);
    if (!may && may.error().code == errc::not_permitted)
      found.push_back({{}, "missing_right", right});
  }
  return found;
}

result<std::string> link::id_of_tables(boot_time deadline) {
  auto got = ask("select * from " + tables_.meta, deadline);
  if (!got) return std::move(got.error());
  constexpr std::size_t column = 3;
  auto& rows = got->front().rows;
  if (rows.size() != 1 || rows[0].size() <= column) return std::string();
  return std::move(rows[0][column]).value_or(std::string());
}

}  // namespace holdfast::store::mariadb
