#include "store/mariadb/user_lock.hpp"

#include "store/mariadb/errors.hpp"

namespace holdfast::store::mariadb {

namespace {

using sql::lock_mode;
using moment_at = std::optional<std::int64_t>;
using cell = std::optional<std::string>;

/// The time of evaluation: utc_timestamp() is the time when the statement began, which may have
/// waited for long.
constexpr const char* clock_now = "timestampdiff(microsecond, '1970-01-01', sysdate(6))";
/// Unconverted, because takes_writes costs the server half as much as such a statement.
constexpr const char* read_only = "@@global.read_only";
constexpr int a_year = 31'536'000;
/// The name of a database as this server writes it: with lower_case_table_names another spelling
/// names the same database.
std::string as_the_server_writes(const std::string& database) {
  const std::string name = "_utf8mb4 " + hex(database);
  return "case @@lower_case_table_names when 0 then " + name + " else lower(" + name + ") end";
}
/// Two servers differ in the first three values, two lives of one server in its start time: the
/// server counts its uptime from then to the beginning of the statement, and unix_timestamp() is
/// that beginning, too.
constexpr const char* life =
    "select concat_ws(' ', @@hostname, @@port, @@server_id, unix_timestamp() - (select "
    "variable_value from information_schema.global_status where variable_name = 'uptime'))";

moment_at moment_in(const std::vector<link::answer>& got) {
  if (got.empty() || got.front().rows.empty() || !got.front().rows[0][0]) return std::nullopt;
  return number(got.front().rows[0][0]);
}

std::string host_of(const cell& with_port) {
  const std::string text = with_port.value_or("");
  return text.substr(0, text.rfind(':'));
}

}  // namespace

result<std::unique_ptr<sql::lock_link>> user_lock_link::open(const mariadb_options& o,
                                                             const tables& t) {
  auto made = link::open(o, t);
  if (!made) return std::move(made.error());
  std::unique_ptr<user_lock_link> mine{new user_lock_link(std::move(*made))};
  if (auto ok = mine->set_up(o); !ok) return std::move(ok.error());
  return std::unique_ptr<sql::lock_link>(std::move(mine));
}

// The user's settings must not end a wait, or a connection that holds a lock.
status user_lock_link::set_up(const mariadb_options& o) {
  const auto silence = std::to_string(o.silence.count() / 1000);
  const auto got = link_->ask("set session wait_timeout = " + silence +
                              ", session time_zone = '+00:00'; select connection_id(), " +
                              read_only + ", " + as_the_server_writes(o.database));
  if (!got) return got.error();
  if (got->back().rows.empty() || number(got->back().rows[0][0]) != id()) {
    return failure{
        errc::unsupported,
        "there is a proxy before the server, and with mode=session another client would receive "
        "the connection next: name the server itself, or use mode=lease"};
  }
  const auto only_reads = got->back().rows[0].at(1);
  scope_ = got->back().rows[0].at(2).value_or(o.database) + ".";
  // MySQL has a similar setting, for reads only, and no such table.
  const auto begun = link_->ask(std::string("set session max_statement_time = 0; ") + life);
  if (begun && !begun->back().rows.empty()) life_ = begun->back().rows[0][0].value_or("");
  return leave_if_it_only_reads(only_reads);
}

status user_lock_link::leave_if_it_only_reads(const cell& only_reads) {
  if (only_reads == "0" || only_reads == "OFF") return done{};
  drop();
  return takes_no_writes("it is read_only");
}

std::string user_lock_link::key(std::string_view name) const {
  return "sha2(" + hex(scope_ + std::string(name)) + ", 256)";
}

std::string user_lock_link::locking(std::string_view name, int seconds) const {
  return "select case get_lock(" + key(name) + ", " + std::to_string(seconds) + ") when 1 then " +
         clock_now + " end, " + read_only;
}

result<moment_at> user_lock_link::try_lock(std::string_view name, lock_mode) {
  const auto got = link_->ask(locking(name, 0));
  if (!got) return got.error();
  if (auto ok = leave_if_it_only_reads(got->front().rows.at(0).at(1)); !ok)
    return std::move(ok.error());
  return moment_in(*got);
}

result<bool> user_lock_link::unlock(std::string_view name, lock_mode) {
  const auto got = link_->ask("select release_lock(" + key(name) + ")");
  if (!got) return got.error();
  return moment_in(*got) == 1;
}

result<moment_at> user_lock_link::change(std::string_view, lock_mode) {
  return failure{errc::unsupported, "GET_LOCK knows no shared locks"};
}

status user_lock_link::begin(std::string_view name, lock_mode) {
  return link_->begin(locking(name, a_year));
}

result<moment_at> user_lock_link::end() {
  const auto got = link_->end();
  if (!got) return got.error();
  if (!got->empty() && !got->front().rows.empty()) {
    if (auto ok = leave_if_it_only_reads(got->front().rows[0].at(1)); !ok)
      return std::move(ok.error());
  }
  return moment_in(*got);
}

status user_lock_link::interrupt(const sql::lock_link& other) {
  const auto got = link_->ask("kill query " + std::to_string(other.id()));
  return got ? status(done{}) : status(got.error());
}

status user_lock_link::ping() {
  const auto got = link_->ask(std::string("select ") + read_only);
  if (!got) return got.error();
  return leave_if_it_only_reads(got->front().rows.at(0).at(0));
}

// Finds the waiters by their statement: the server lists locks only with a plug-in.
result<std::vector<sql::lock_user>> user_lock_link::users(std::string_view name) {
  const auto got = link_->ask(
      "select p.id, p.id = u.holder, p.host from information_schema.processlist p, (select "
      "is_used_lock(" +
      key(name) +
      ") as holder) u where p.id = u.holder or (p.state = 'User lock' and p.info like " +
      "concat('select case get_lock(', " + hex(key(name)) + ", '%')) order by 2 desc, p.id");
  if (!got) return got.error();
  std::vector<sql::lock_user> all;
  for (const auto& row : got->front().rows) {
    all.push_back({number(row[0]), number(row[1]) == 1, false, host_of(row[2]), {}});
  }
  return all;
}

}  // namespace holdfast::store::mariadb
