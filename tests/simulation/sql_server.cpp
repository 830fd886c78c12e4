#ifdef HOLDFAST_WITH_SQL
#include "simulation/sql_server.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/sha256.hpp"
#include "family/state_family.hpp"
#include "store/mariadb/mariadb.hpp"
#include "store/postgres/postgres.hpp"

namespace simulation {

/// The server's end of a connection.
struct sql_backend {
  int number = 0;
  std::weak_ptr<sql_client> client{};
  std::shared_ptr<connection> way{};
  sql_transaction transaction{};
  bool begun = false;   ///< by a statement that says so
  bool failed = false;  ///< PostgreSQL: only a rollback helps
  bool working = false;
  bool leaves = false;  ///< its client has gone: it ends once its present work is done
  bool ended = false;
  std::deque<std::shared_ptr<sql_exchange>> queue{};
  std::size_t text = 0;       ///< index in the first exchange
  std::size_t statement = 0;  ///< index in that text
  std::uint64_t steps = 0;    ///< the current step; alarms of older steps are ignored
  std::int64_t statement_began = 0;
  nanos lock_timeout = 10 * second;
  nanos lock_timeout_here = 0;  ///< of this transaction; 0: the default
  nanos idle_timeout = 0;
  std::vector<std::string> listens{};
  nanos silence = 0;           ///< after this time the server ends the connection
  bool waits_in_line = false;  ///< for an advisory lock
  nanos idle_since = 0;        ///< when it finished its last work
  std::map<std::string, std::int64_t> granted_at{};
  std::int64_t primary = 1;  ///< the number of its server
};

namespace {

constexpr nanos deadlocks_are_looked_for_after = second;  // as PostgreSQL does

std::map<std::string, sql_server*>& all_servers() {
  static std::map<std::string, sql_server*> all;
  return all;
}

std::string label_of(const std::vector<sql_text>& texts) {
  std::string label;
  for (const auto& t : texts) {
    label += (label.empty() ? "" : "; ") + t.text.substr(0, t.text.find(' ')) + "(";
    for (const auto& v : t.values) {
      if (label.back() != '(') label += ' ';
      label += v.null() ? "-" : v.as_text().substr(0, 60);
    }
    label += ')';
  }
  return label;
}

bool is_last(const sql_backend& b, const sql_exchange& e) { return b.text == e.texts.size(); }

}  // namespace

// ---- the client's end

sql_client::sql_client(dialled_server& to, server& of, std::shared_ptr<connection> way)
    : dialled(to, of, std::move(way)), to_(static_cast<sql_server&>(to)) {}

bool sql_client::has_input() const noexcept {
  return broken() || !lines.empty() || (!sent.empty() && sent.front()->over);
}

std::shared_ptr<sql_exchange> sql_client::send(std::vector<sql_text> texts) {
  auto e = std::make_shared<sql_exchange>();
  if (traced()) e->label = label_of(texts);
  e->texts = std::move(texts);
  e->takes_time = true;
  auto* const raw = e.get();
  e->carry_out = [&to = to_, n = number(), raw, weak = std::weak_ptr(e)] {
    if (const auto here = weak.lock(); here.get() == raw) to.take(n, here);
  };
  sent.push_back(e);
  begin(e);
  return e;
}

// ---- the server

sql_server::sql_server(server& of)
    : dialled_server(of),
      dialect_(of.is_.keeps == server_traits::what::mariadb_rows ? sql_dialect::mariadb
                                                                 : sql_dialect::postgres) {
  all_servers()[of.name()] = this;
}

sql_server::~sql_server() { all_servers().erase(of_.name()); }

sql_server& sql_server::named(const std::string& host) { return *all_servers().at(host); }

namespace {

// As the driver computes it.
std::string key_of(std::string_view name) {
  const auto hash = holdfast::base::sha256("public." + std::string(name));
  return std::to_string(static_cast<std::int64_t>(std::uint64_t{hash[0]} << 32 | hash[1]));
}

template <class Options>
Options with_limits(nanos command_timeout) {
  Options o;
  o.connect_timeout = o.command_timeout = std::chrono::milliseconds(command_timeout / millisecond);
  return o;
}

}  // namespace

std::unique_ptr<holdfast::store::session_store> sql_server::connect(process& of) {
  if (keeps_locks()) return open_until_it_works(of, [this] { return open_session_locks(); });
  return holdfast::family::over(open_until_it_works(of, [this] { return open_driver(); }));
}

holdfast::result<std::unique_ptr<holdfast::store::session_store>> sql_server::open_session_locks() {
  namespace store = holdfast::store;
  auto o = with_limits<store::postgres::postgres_options>(of_.is_.command_timeout);
  o.silence = std::chrono::seconds(6);
  o.server.parameters = {{"host", of_.name()}};
  o.url = of_.name();
  return store::postgres::open_postgres_session(std::move(o));
}

holdfast::result<std::unique_ptr<holdfast::store::state_store>> sql_server::open_driver() {
  namespace store = holdfast::store;
  if (is_postgres()) {
    auto o = with_limits<store::postgres::postgres_options>(of_.is_.command_timeout);
    o.server.parameters = {{"host", of_.name()}};
    o.url = of_.name();
    return store::postgres::open_postgres(std::move(o));
  }
  auto o = with_limits<store::mariadb::mariadb_options>(of_.is_.command_timeout);
  o.url = o.host = of_.name();
  o.database = "locks";
  return store::mariadb::open_mariadb(std::move(o));
}

std::vector<std::string> sql_server::names() {
  if (keeps_locks()) return locks_.names();
  auto all = of_.family_->names();
  return all ? std::move(*all) : std::vector<std::string>{"(" + all.error().what + ")"};
}

// An acquisition of several names creates a row to lock it. A row without a record would never be
// swept.
std::string sql_server::for_ever() {
  for (const auto& [name, r] : tables_->records) {
    const auto& last = r.history.back();
    if (last.there && last.record == "null" && r.idle())
      return "the row of " + name + ", without a record";
  }
  return {};
}

std::string sql_server::idle_in_transaction(nanos longest) {
  const nanos before = of_.world_.now() - longest;
  for (const auto& [number, b] : backends_) {
    const auto c = b->client.lock();
    const process& by = *b->way->of;
    const bool idle = b->begun && !b->working && b->idle_since < before;
    const bool awake = !by.dead && by.paused_until < before && by.steady_since < before;
    if (!idle || !awake || !c || c->broken() || b->way->disturbed_at >= before) continue;
    return "connection " + std::to_string(number) + " of P" + std::to_string(by.number);
  }
  return {};
}

std::string sql_server::describe(std::string_view name) {
  if (keeps_locks()) {
    std::string text = std::string(name) + ":";
    const auto keys = locks_.names();
    const bool is_key = std::find(keys.begin(), keys.end(), name) != keys.end();
    for (const auto& u : locks_.users_of(is_key ? std::string(name) : key_of(name))) {
      text += " connection " + std::to_string(u.who) + (u.holds ? " holds" : " waits") +
              (u.shared ? " shared;" : ";");
    }
    return text;
  }
  const auto at = of_.records_.find(name);
  return at == of_.records_.end() ? std::string(name) + " is not there"
                                  : std::string(name) + ": " + at->second;
}

std::vector<back_end::user> sql_server::users(std::string_view name) {
  std::vector<user> all;
  if (keeps_locks()) {
    for (const auto& u : locks_.users_of(key_of(name))) {
      const auto at = backends_.find(u.who);
      const holdfast::store::owner_id its{static_cast<std::uint64_t>(u.who), 0};
      all.push_back({its, at == backends_.end() ? 0 : at->second->way->of->number});
    }
    return all;
  }
  const auto r = of_.record_of(name);
  const auto now = of_.time().wall_at;
  for (const auto& h : r.holders)
    all.push_back({h.owner, of_.number_of(h.peer), false, of_.lasts(h.expires_at),
                   (now - h.since_wall_at) * microsecond});
  for (const auto& w : r.queue) all.push_back({w.owner, of_.number_of(w.peer), true});
  return all;
}

bool sql_server::lets_one_wait_for_what_is_free(std::string_view name) {
  return !keeps_locks() && server::first_one_fits(of_.record_of(name));
}

std::vector<std::string> sql_server::peers_at_latch(std::string_view name) {
  return keeps_locks() ? std::vector<std::string>{} : of_.peers_in_latch(name);
}

std::optional<std::uint32_t> sql_server::left_at_latch(std::string_view name) {
  return of_.latch_of(name);
}

bool sql_server::forget() {
  if (keeps_locks()) return true;  // the locks end with their connections
  tables_->restore(of_.world_.random().one_in(2) ? replica_ : sql_tables::copy{});
  mirror();
  return true;
}

void sql_server::stopped() {
  locks_.end_all();
  for (const auto& [number, b] : std::map(backends_)) end(b);
}

sql_tables& sql_server::tables_of(const sql_backend& b) noexcept {
  return b.primary == number_ ? *tables_ : *former_;
}

// A standby becomes the primary, with what it knows, and new connections lead to it. The former
// primary goes on: it takes writes over the connections that it has until it is shut down.
bool sql_server::divide(nanos until) {
  if (keeps_locks()) return false;
  end_the_former();
  former_ = std::move(tables_);
  tables_ = std::make_unique<sql_tables>();
  tables_->commits = former_->commits;
  tables_->restore(of_.world_.random().one_in(2) ? replica_ : former_->now());
  ++number_;
  mirror();
  for (const auto& [number, b] : std::map(backends_)) {
    if (of_.world_.random().one_in(2)) continue;
    if (!b->way->closed) of_.fail(*b->way, "simulated: the address leads elsewhere", 0);
    end(b);
  }
  of_.world_.at(until, [this, mine = number_] {
    if (mine == number_) end_the_former();
  });
  return true;
}

void sql_server::end_the_former() {
  for (const auto& [number, b] : std::map(backends_)) {
    if (b->primary == number_) continue;
    if (!b->way->closed) of_.fail(*b->way, "simulated: the former primary ends", 0);
    end(b);
  }
  former_.reset();
}

void sql_server::process_died(const process& of) {
  for (const auto& [number, b] : backends_) {
    if (b->way->of != &of) continue;
    of_.world_.at(of_.world_.now() + of_.way(), [this, n = number] { leave(n); });
  }
}

void sql_server::greet(const std::shared_ptr<dialled>& c) {
  auto b = std::make_shared<sql_backend>();
  b->number = b->transaction.number = c->number();
  b->client = std::static_pointer_cast<sql_client>(c);
  b->way = way_of(*c);
  b->primary = number_;
  backends_.emplace(b->number, b);
}

void sql_server::take(int number, const std::shared_ptr<sql_exchange>& e) {
  const auto at = backends_.find(number);
  if (at == backends_.end()) return;
  at->second->queue.push_back(e);
  if (!at->second->working) go_on(at->second);
}

void sql_server::leave(int number) {
  const auto at = backends_.find(number);
  if (at == backends_.end()) return;
  const auto b = at->second;
  b->leaves = true;
  if (!b->working) return end(b);
  if (!b->waits_in_line || b->silence == 0) return;
  // The server checks now and then whether its client is there (client_connection_check_interval).
  world& w = of_.world_;
  w.at(w.now() + w.random().between(0, b->silence), [this, b] {
    if (!b->ended && b->waits_in_line) end(b);
  });
}

// ---- one statement after the other

void sql_server::go_on_later(const std::shared_ptr<sql_backend>& b, nanos after) {
  of_.world_.at(of_.world_.now() + after, [this, b, step = b->steps] {
    if (!b->ended && step == b->steps) go_on(b);
  });
}

void sql_server::go_on(const std::shared_ptr<sql_backend>& b) {
  world& w = of_.world_;
  b->working = true;
  ++b->steps;
  if (w.now() < of_.frozen_until_) return go_on_later(b, of_.frozen_until_ - w.now());
  while (!b->ended && !b->queue.empty()) {
    if (!do_next(b)) return;
    if (b->ended || b->queue.empty()) break;
    if (is_slow(*b)) {
      of_.disturbed(*b->way);
      return go_on_later(b, w.random().between(0, of_.net_.slowest_late / 16));
    }
    if (w.random().one_in(3)) return go_on_later(b, w.random().between(0, 100 * microsecond));
  }
  b->working = false;
  if (b->ended) return;
  if (b->leaves) return end(b);
  if (b->silence != 0) return watch_for_silence(b);
  if (b->idle_timeout == 0 || !b->begun) return;
  w.at(w.now() + b->idle_timeout, [this, b, step = b->steps] {
    if (b->ended || step != b->steps || !b->begun) return;
    of_.trace_.add("server", "ends an idle transaction");
    if (!b->way->closed) of_.fail(*b->way, "simulated: idle in transaction", 0);
    end(b);
  });
}

// The disk is slow, and a commit waits for it with all its locks.
bool sql_server::is_slow(const sql_backend& b) {
  const bool commits = is_last(b, *b.queue.front()) && !b.transaction.written.empty();
  return of_.happens(of_.net_.slow_request * (commits ? 5 : 1));
}

// False if the statement waits.
bool sql_server::do_next(const std::shared_ptr<sql_backend>& b) {
  const auto e = b->queue.front();
  if (is_last(*b, *e)) return finish(b), true;
  if (b->silence == 0 && of_.happens(of_.net_.lose_reply / 8)) {
    of_.trace_.add("server", "ends a connection in the middle of its work");
    of_.disturbed(*b->way);
    if (!b->way->closed) of_.fail(*b->way, "simulated: terminated", 0);
    return end(b), true;
  }
  const auto& t = e->texts[b->text];
  const auto what = keeps_locks() ? advisory_locks::of(t.text) : advisory_locks::asks::nothing;
  if (what != advisory_locks::asks::nothing) return do_next_of_locks(b, t, what);
  const auto& all = parse_sql(t.text);
  if (refuses(*b, *all[b->statement])) return true;
  if (!do_one(b, *all[b->statement], t.values)) return false;
  if (b->ended || b->queue.empty() || b->queue.front() != e || is_last(*b, *e)) return true;
  if (++b->statement < all.size()) return true;
  b->statement = 0;
  ++b->text;
  return true;
}

// A statement fails for a reason of the server: it is short of memory, or was interrupted.
bool sql_server::refuses(sql_backend& b, const sql_statement& s) {
  using verb = sql_statement::verb;
  const bool changes_rows = s.what != verb::begin && s.what != verb::commit &&
                            s.what != verb::rollback && s.what != verb::set &&
                            s.what != verb::look && s.what != verb::listen;
  if (of_.net_.refuse == 0 || !changes_rows || !of_.happens(of_.net_.refuse)) return false;
  of_.disturbed(*b.way);
  const bool interrupted = of_.world_.random().one_in(2);
  refuse(b, interrupted ? "57014" : "53200", interrupted ? "1317" : "1041",
         interrupted ? "canceling statement due to user request" : "out of memory");
  return true;
}

// ---- locks of sessions

// False if the statement waits.
bool sql_server::do_next_of_locks(const std::shared_ptr<sql_backend>& b, const sql_text& t,
                                  advisory_locks::asks what) {
  using asks = advisory_locks::asks;
  const bool waits = what == asks::wait_exclusive || what == asks::wait_shared;
  if (waits && !locks_.take_or_wait(b->number, t.values[0].text, what == asks::wait_shared)) {
    b->waits_in_line = true;
    if (b->leaves) leave(b->number);
    return false;
  }
  auto r = carry_out_at_locks(*b, t, what);
  const bool tries = what == asks::try_exclusive || what == asks::try_shared;
  const bool changes = what == asks::raise || what == asks::lower;
  const unsigned fails = changes ? of_.net_.fail_changed : tries ? of_.net_.fail_done : 0;
  if ((tries || fails != 0) && of_.world_.random().permille(fails)) {
    of_.disturbed(*b->way);
    refuse(*b, "57014", "1317", "canceling statement due to statement timeout");
  } else {
    answer_at_locks(*b, std::move(r));
  }
  let_in();
  return true;
}

void sql_server::answer_at_locks(sql_backend& b, sql_result r) {
  const auto e = b.queue.front();
  e->answers.push_back({{}, {}, std::move(r)});
  ++b.text;
}

sql_result sql_server::carry_out_at_locks(sql_backend& b, const sql_text& t,
                                          advisory_locks::asks what) {
  using asks = advisory_locks::asks;
  const int me = b.number;
  const auto moment = [this, &b, &t](bool had, bool keeps_fence = false) {
    if (!had) return sql_value{};
    last_moment_ = std::max(last_moment_ + 1, of_.time().wall_at);
    if (!keeps_fence) b.granted_at[t.values[0].text] = last_moment_;
    return sql_value::of(last_moment_);
  };
  const auto yes = [](bool is) { return sql_value::of(std::string(is ? "t" : "f")); };
  const auto only_reads =
      sql_value::of(std::string(of_.world_.now() < of_.read_only_until_ ? "on" : "off"));
  const std::string key = t.values.empty() ? std::string() : t.values[0].text;
  sql_result r;
  r.has_rows = true;
  switch (what) {
    case asks::try_exclusive:
    case asks::try_shared:
      r.rows.push_back({moment(locks_.try_now(me, key, what == asks::try_shared)), only_reads});
      return r;
    case asks::wait_exclusive:
    case asks::wait_shared:
      r.rows.push_back({sql_value::of(std::string()), moment(true)});
      return r;
    case asks::unlock_exclusive:
    case asks::unlock_shared:
      r.rows.push_back({yes(locks_.give_back(me, key, what == asks::unlock_shared))});
      return r;
    case asks::raise:
      r.rows.push_back(
          {moment(locks_.try_now(me, key, false) && locks_.give_back(me, key, true)), only_reads});
      return r;
    case asks::lower:
      if (t.text.find("pg_try_advisory_lock_shared(") != t.text.npos) {
        r.rows.push_back(
            {moment(locks_.try_now(me, key, true) && locks_.give_back(me, key, false), true),
             only_reads});
        return r;
      }
      if (!locks_.take_or_wait(me, key, true)) throw std::logic_error("a downgrade would wait");
      r.rows.push_back({moment(locks_.give_back(me, key, false), true), only_reads});
      return r;
    case asks::cancel:
      cancel_soon(static_cast<int>(t.values[0].as_number()));
      r.rows.push_back({yes(true)});
      return r;
    case asks::users:
      for (const auto& u : locks_.users_of(key)) {
        r.rows.push_back({sql_value::of(std::int64_t{u.who}), yes(u.holds), yes(u.shared),
                          sql_value::of(std::string("host")), sql_value::of(std::string())});
      }
      return r;
    case asks::set:
      if (key == "idle_session_timeout") b.silence = millisecond * t.values[1].as_number();
      r.rows.push_back({t.values[1]});
      return r;
    default:
      r.rows.push_back({only_reads});
      return r;
  }
}

// A connection whose lock request was granted is answered when it runs again.
void sql_server::let_in() {
  for (const int number : locks_.let_in()) {
    const auto at = backends_.find(number);
    if (at == backends_.end()) continue;
    const auto b = at->second;
    b->waits_in_line = false;
    const auto e = b->queue.front();
    answer_at_locks(
        *b, carry_out_at_locks(*b, e->texts[b->text], advisory_locks::asks::wait_exclusive));
    ++b->steps;
    go_on_later(b, of_.world_.random().between(0, 20 * microsecond));
  }
}

// A signal: it cancels what the connection waits for when the signal arrives, which may be another
// statement.
void sql_server::cancel_soon(int number) {
  world& w = of_.world_;
  w.at(w.now() + w.random().between(0, 200 * microsecond), [this, number] {
    const auto at = backends_.find(number);
    if (at == backends_.end() || !at->second->waits_in_line) return;
    const auto b = at->second;
    b->waits_in_line = false;
    locks_.stop_waiting(number);
    refuse(*b, "57014", "1317", "canceling statement due to user request");
    let_in();
    go_on(b);
  });
}

void sql_server::watch_for_silence(const std::shared_ptr<sql_backend>& b) {
  of_.world_.at(of_.world_.now() + b->silence, [this, b, step = b->steps] {
    if (b->ended || step != b->steps) return;
    of_.trace_.add("server", "ends a silent connection");
    if (!b->way->closed) of_.fail(*b->way, "simulated: idle-session timeout", 0);
    end(b, true);
  });
}

bool sql_server::do_one(const std::shared_ptr<sql_backend>& b, const sql_statement& s,
                        const std::vector<sql_value>& values) {
  if (!b->transaction.snapshot) b->statement_began = of_.time().wall_at;
  if (writes(s) && of_.world_.now() < of_.read_only_until_) {
    refuse(*b, "25006", "1290", "it is read-only");
    return true;
  }
  auto& tables = tables_of(*b);
  tables.refused = of_.world_.now() < of_.row_refused_until_ ? of_.refused_row_ : std::string();
  sql_answer a;
  try {
    a.result = run(*b, s, values);
  } catch (const sql_must_wait& wait) {
    begin_waiting(b, *wait.row);
    return false;
  } catch (const sql_refused& why) {
    refuse(*b, why.postgres, why.mariadb, why.said);
    return true;
  }
  b->queue.front()->answers.push_back(std::move(a));
  if (!is_postgres() && !b->begun) end_transaction(*b, true);
  return true;
}

sql_result sql_server::run(sql_backend& b, const sql_statement& s,
                           const std::vector<sql_value>& values) {
  using verb = sql_statement::verb;
  sql_result r;
  switch (s.what) {
    case verb::begin:
      // The server would end the one before as if the client had committed it.
      if (b.begun) {
        violated(
            "no connection begins a transaction in another one",
            "connection " + std::to_string(b.number) + " of P" + std::to_string(b.way->of->number));
      }
      b.begun = true;
      return r;
    case verb::commit:
    case verb::rollback:
      b.failed = false;
      end_transaction(b, s.what == verb::commit);
      return r;
    case verb::set:
      if (s.limit) {
        const auto which = static_cast<std::size_t>(s.limit->value.as_number());
        b.lock_timeout = second * values.at(which).as_number();
        if (s.text.find("idle_transaction_timeout") != s.text.npos) b.idle_timeout = b.lock_timeout;
      }
      return r;
    case verb::look:  // the tables exist
      r.has_rows = true;
      r.rows.push_back(
          {sql_value::of(std::string(is_postgres() ? "t" : "1")),
           sql_value::of(is_postgres() ? std::string("t") : "t" + std::to_string(b.primary))});
      return r;
    case verb::listen:
      b.listens.push_back(s.text);
      b.way->on_gap = [this, way = b.way] {
        if (!way->closed) of_.fail(*way, "simulated: the connection broke", 0);
      };
      return r;
    default:
      break;
  }
  const sql_surroundings around{
      dialect_, [&] { return is_postgres() ? of_.time().wall_at : b.statement_began; },
      [&](const std::string& function, std::span<const sql_value> of) {
        return call(b, function, of);
      }};
  return carry_out(s, values, tables_of(b), b.transaction, around);
}

sql_value sql_server::call(sql_backend& b, const std::string& function,
                           std::span<const sql_value> of) {
  if (function == "pg_notify") {
    b.transaction.tells.emplace_back(of[0].text, of[1].text);
    return sql_value::of(std::string());
  }
  if (function == "set_config") {
    const nanos length = millisecond * of[1].as_number();
    if (of[0].text == "idle_in_transaction_session_timeout") {
      b.idle_timeout = length;
    } else if (of[0].text == "lock_timeout") {
      (of[2].is_true() ? b.lock_timeout_here : b.lock_timeout) = length;
    }
    return of[1];
  }
  if (function == "takes_writes") {
    return sql_value::of(std::int64_t{of_.world_.now() >= of_.read_only_until_});
  }
  if (function == "pg_backend_pid") return sql_value::of(std::int64_t{b.number});
  if (function == "pg_is_in_recovery") {
    return sql_value::of(std::string(of_.world_.now() < of_.read_only_until_ ? "t" : "f"));
  }
  // The restarted server counts as the same server, however often it restarts.
  if (function == "pg_postmaster_start_time" || function == "date_part") {
    return sql_value::of(b.primary);
  }
  if (function == "current_setting") return sql_value::of(std::string("UTF8"));
  throw std::logic_error("the simulated server has no function " + function);
}

// ---- waiting

void sql_server::begin_waiting(const std::shared_ptr<sql_backend>& b, sql_row& row) {
  auto& t = b->transaction;
  t.waits_for = &row;
  row.waiting.push_back(&t);
  const auto alarm = [&](nanos after, auto what) {
    of_.world_.at(of_.world_.now() + after, [b, step = b->steps, what] {
      if (!b->ended && step == b->steps && b->transaction.waits_for != nullptr) what();
    });
  };
  alarm(is_postgres() ? deadlocks_are_looked_for_after : microsecond, [this, b] {
    if (!tables_of(*b).waits_in_a_ring(b->transaction)) return;
    refuse(*b, "40P01", "1213", "deadlock detected");
    go_on(b);
  });
  alarm(b->lock_timeout_here != 0 ? b->lock_timeout_here : b->lock_timeout, [this, b] {
    refuse(*b, "55P03", "1205", "lock timeout");
    go_on(b);
  });
}

void sql_server::stop_waiting(sql_backend& b) {
  auto& t = b.transaction;
  if (t.waits_for == nullptr) return;
  std::erase(t.waits_for->waiting, &t);
  t.waits_for = nullptr;
}

// The rest of the batch is not carried out. After a deadlock MariaDB undoes the whole transaction,
// after a time-out only the statement.
void sql_server::refuse(sql_backend& b, const char* postgres, const char* mariadb,
                        std::string said) {
  stop_waiting(b);
  of_.trace_.add("server", "(" + said + ")");
  b.transaction.snapshot.reset();
  const auto e = b.queue.front();
  e->answers.push_back({is_postgres() ? postgres : mariadb, std::move(said), {}});
  b.text = e->texts.size();
  b.failed = true;
  if (is_postgres() || !b.begun || e->answers.back().state == "1213") end_transaction(b, false);
}

// ---- ends

// Ends a batch that was sent together.
void sql_server::finish(const std::shared_ptr<sql_backend>& b) {
  const auto e = b->queue.front();
  b->queue.pop_front();
  b->text = b->statement = 0;
  if (!b->begun) end_transaction(*b, !b->failed);
  if (!is_postgres() || !b->begun) b->failed = false;
  e->in_transaction = b->begun;
  b->idle_since = of_.world_.now();
  of_.reply(b->way, e);
}

void sql_server::end_transaction(sql_backend& b, bool well) {
  auto& t = b.transaction;
  const bool explicitly = b.begun;
  if (!b.failed || !is_postgres() || well) b.begun = false;
  b.lock_timeout_here = 0;
  if (!explicitly && t.held.empty() && t.tells.empty()) return;
  const bool changes = well && !t.written.empty();
  const auto tells = well ? std::exchange(t.tells, {}) : decltype(t.tells){};
  auto& tables = tables_of(b);
  const auto go = well ? tables.commit(t) : tables.roll_back(t);
  if (changes) mirror();
  for (const auto& [channel, line] : tells) tell(b.primary, channel, line);
  for (const auto* const other : go) {
    const auto at = backends_.find(other->number);
    if (at == backends_.end()) continue;
    stop_waiting(*at->second);
    ++at->second->steps;
    go_on_later(at->second, of_.world_.random().between(0, 20 * microsecond));
  }
}

void sql_server::end(const std::shared_ptr<sql_backend>& b, bool was_silent) {
  if (b->ended) return;
  stop_waiting(*b);
  b->failed = false;
  end_transaction(*b, false);
  b->ended = true;
  b->queue.clear();
  backends_.erase(b->number);
  if (!keeps_locks()) return;
  for (const auto& key : locks_.held_by(b->number)) {
    if (of_.on_end_of_a_holder) of_.on_end_of_a_holder(b->granted_at[key], was_silent);
  }
  locks_.end(b->number);
  let_in();
}

// Done in a moment: a loop over the notified connections is running now.
void sql_server::break_off(const std::shared_ptr<sql_backend>& b) {
  of_.disturbed(*b->way);
  of_.world_.at(of_.world_.now(), [this, b] {
    if (b->ended) return;
    of_.trace_.add("server", "ends a connection for notifications");
    if (!b->way->closed) of_.fail(*b->way, "simulated: terminated", 0);
    end(b);
  });
}

void sql_server::tell(std::int64_t from, const std::string& channel, const std::string& line) {
  for (const auto& [number, b] : backends_) {
    const bool hears = b->primary == from &&
                       std::find(b->listens.begin(), b->listens.end(), channel) != b->listens.end();
    if (!hears) continue;
    if (of_.happens(of_.net_.break_listener)) {
      break_off(b);
      continue;
    }
    of_.post(b->way, [weak = b->client, line] {
      const auto c = weak.lock();
      if (!c || c->broken()) return;
      c->lines.push_back(line);
      wake(*c);
    });
  }
}

// Copies the rows for the judge, which sees the server from outside.
void sql_server::mirror() {
  of_.records_.clear();
  const auto all = tables_->now();
  for (const auto& [name, row] : all.records) {
    if (row.record != "null") of_.records_.emplace(name, row.record);
  }
  if (of_.world_.random().one_in(8)) replica_ = all;
}

}  // namespace simulation
#endif
