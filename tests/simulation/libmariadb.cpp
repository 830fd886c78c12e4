// The functions of MariaDB's client library that the driver calls, over the simulated network. This
// program's own definitions come before those of the library.
#ifdef HOLDFAST_WITH_SQL
#include <mysql.h>
#include <poll.h>
#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulation/descriptors.hpp"
#include "simulation/sql_server.hpp"

using simulation::nanos;
using simulation::sql_answer;
using simulation::sql_client;
using simulation::sql_exchange;
using simulation::sql_server;
using simulation::sql_value;
using simulation::world;

namespace {

constexpr unsigned cannot_connect = 2003;
constexpr unsigned connection_lost = 2013;

struct simulated_mysql final : MYSQL, simulation::descriptor {
  simulated_mysql() : number(simulation::open_descriptor(*this)) {}
  ~simulated_mysql() override { simulation::close_descriptor(number); }

  short ready(short events) const noexcept override {
    const bool input = !client || client->has_input();
    return static_cast<short>(events & (input ? POLLIN | POLLOUT : POLLOUT));
  }
  void wait_here(simulation::fiber& who) override { client->wait_here(who); }
  void leave_here(const simulation::fiber& who) noexcept override { client->leave_here(who); }

  const int number;
  std::shared_ptr<sql_client> client{};
  nanos connects_in = 10 * simulation::second;
  std::shared_ptr<sql_exchange> asked{};
  std::vector<sql_answer> answers{};
  std::size_t now = 0;
  unsigned error = 0;
  std::string said{};

  int failed(unsigned number_of_error, std::string why) {
    error = number_of_error;
    said = std::move(why);
    return 1;
  }
  // Reads the server's answer to the next statement.
  int seen() {
    const sql_answer& a = answers.at(now);
    return a.state.empty() ? 0 : failed(static_cast<unsigned>(std::stoul(a.state)), a.said);
  }
  // Begins an asynchronous call of the library; returns the events that the call waits for.
  int begin(int& outcome, std::vector<simulation::sql_text> texts) {
    answers.clear();
    now = 0;
    error = 0;
    if (client && client->broken()) client->found_broken();
    if (!client || client->broken()) {
      outcome = failed(connection_lost, "simulated: it is broken");
      return 0;
    }
    asked = client->send(std::move(texts));
    return MYSQL_WAIT_READ;
  }
  // Continues the call. The driver waits for an answer, for the end of the connection, or until its
  // time-out.
  int go_on(int& outcome) {
    const auto e = std::exchange(asked, nullptr);
    if (!e->over || e->failed) {
      client.reset();
      outcome = failed(connection_lost, "simulated: no answer");
      return 0;
    }
    client->sent.pop_front();
    answers = std::move(e->answers);
    outcome = answers.empty() ? 0 : seen();
    return 0;
  }
};

simulated_mysql& of(MYSQL* m) { return *static_cast<simulated_mysql*>(m); }

struct simulated_rows : MYSQL_RES {
  std::vector<std::vector<std::string>> texts{};
  std::vector<std::vector<char*>> cells{};
  std::vector<unsigned long> sizes{};
  std::size_t next = 0;
};

struct simulated_statement : MYSQL_STMT {
  simulated_mysql* over = nullptr;
  std::string text{};
  std::vector<sql_value> values{};
};

simulated_statement& of(MYSQL_STMT* s) { return *static_cast<simulated_statement*>(s); }

}  // namespace

extern "C" {

MYSQL* mysql_init(MYSQL*) { return new simulated_mysql{}; }
void mysql_close(MYSQL* m) { delete &of(m); }
unsigned mysql_errno(MYSQL* m) { return of(m).error; }
const char* mysql_error(MYSQL* m) { return of(m).said.c_str(); }

// The library's type of `which` is one that C++ promotes in variable arguments.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvarargs"
int mysql_optionsv(MYSQL* m, mysql_option which, ...) {
  va_list all;
  va_start(all, which);
  const void* const value = va_arg(all, const void*);
  va_end(all);
  const auto seconds = [&] { return *static_cast<const unsigned*>(value) * simulation::second; };
  if (which == MYSQL_OPT_CONNECT_TIMEOUT) of(m).connects_in = seconds();
  return 0;
}
#pragma GCC diagnostic pop

MYSQL* mysql_real_connect(MYSQL* m, const char* host, const char*, const char*, const char*,
                          unsigned, const char*, unsigned long) {
  auto& to = of(m);
  to.client = sql_server::named(host).open(*world::self()->of);
  if (to.client->wait_until_connected(world::running()->now() + to.connects_in)) return m;
  to.client.reset();
  (void)to.failed(cannot_connect, "simulated: no connection");
  return nullptr;
}

// There is no TLS and no option file.
const char* mysql_get_ssl_cipher(MYSQL*) { return nullptr; }
int mysql_get_optionv(MYSQL*, mysql_option, void*, ...) { return 0; }

my_socket mysql_get_socket(MYSQL* m) { return of(m).number; }
unsigned long mysql_thread_id(MYSQL* m) {
  return static_cast<unsigned long>(of(m).client->number());
}

int mysql_real_query_start(int* outcome, MYSQL* m, const char* text, unsigned long length) {
  simulation::sql_text one;
  one.text = simulation::take_values({text, length}, one.values);
  return of(m).begin(*outcome, {std::move(one)});
}
int mysql_real_query_cont(int* outcome, MYSQL* m, int) { return of(m).go_on(*outcome); }

// Reports whether another answer follows; all answers have arrived.
int mysql_next_result_start(int* outcome, MYSQL* m) {
  auto& c = of(m);
  const bool more = c.now + 1 < c.answers.size();
  if (more) ++c.now;
  *outcome = more ? c.seen() : -1;
  return 0;
}
int mysql_next_result_cont(int*, MYSQL*, int) { std::abort(); }

unsigned mysql_field_count(MYSQL* m) {
  const auto& c = of(m);
  return c.now < c.answers.size() && c.answers[c.now].result.has_rows ? 1 : 0;
}

my_ulonglong mysql_affected_rows(MYSQL* m) {
  const auto& c = of(m);
  return c.now < c.answers.size() ? c.answers[c.now].result.affected : 0;
}

int mysql_store_result_start(MYSQL_RES** outcome, MYSQL* m) {
  *outcome = nullptr;
  if (mysql_field_count(m) == 0) return 0;
  auto made = std::make_unique<simulated_rows>();
  for (const auto& row : of(m).answers[of(m).now].result.rows) {
    auto& texts = made->texts.emplace_back();
    for (const auto& v : row) texts.push_back(v.as_text());
  }
  std::size_t i = 0;
  for (const auto& row : of(m).answers[of(m).now].result.rows) {
    auto& texts = made->texts[i++];
    auto& cells = made->cells.emplace_back();
    for (std::size_t k = 0; k < row.size(); ++k) {
      cells.push_back(row[k].null() ? nullptr : texts[k].data());
    }
  }
  *outcome = made.release();
  return 0;
}
int mysql_store_result_cont(MYSQL_RES**, MYSQL*, int) { std::abort(); }

void mysql_free_result(MYSQL_RES* r) { delete static_cast<simulated_rows*>(r); }

MYSQL_ROW mysql_fetch_row(MYSQL_RES* r) {
  auto& all = *static_cast<simulated_rows*>(r);
  if (all.next == all.cells.size()) return nullptr;
  all.sizes.clear();
  for (const auto& t : all.texts[all.next]) all.sizes.push_back(t.size());
  return all.cells[all.next++].data();
}

unsigned long* mysql_fetch_lengths(MYSQL_RES* r) {
  return static_cast<simulated_rows*>(r)->sizes.data();
}

unsigned mysql_num_fields(MYSQL_RES* r) {
  return static_cast<unsigned>(static_cast<simulated_rows*>(r)->sizes.size());
}

MYSQL_STMT* mysql_stmt_init(MYSQL* m) {
  auto* const s = new simulated_statement{};
  s->over = &of(m);
  return s;
}

int mysql_stmt_prepare_start(int* outcome, MYSQL_STMT* s, const char* text, unsigned long length) {
  of(s).text.assign(text, length);
  return of(s).over->begin(*outcome, {});
}
int mysql_stmt_prepare_cont(int* outcome, MYSQL_STMT* s, int) {
  return of(s).over->go_on(*outcome);
}

my_bool mysql_stmt_bind_param(MYSQL_STMT* s, MYSQL_BIND* all) {
  auto& values = of(s).values;
  values.clear();
  const auto count =
      static_cast<std::size_t>(std::count(of(s).text.begin(), of(s).text.end(), '?'));
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_text = all[i].buffer_type == MYSQL_TYPE_BLOB;
    values.push_back(is_text ? sql_value::of(std::string(static_cast<const char*>(all[i].buffer),
                                                         all[i].buffer_length))
                             : sql_value::of(*static_cast<const std::int64_t*>(all[i].buffer)));
  }
  return 0;
}

int mysql_stmt_execute_start(int* outcome, MYSQL_STMT* s) {
  return of(s).over->begin(*outcome, {{of(s).text, of(s).values}});
}
int mysql_stmt_execute_cont(int* outcome, MYSQL_STMT* s, int) {
  return of(s).over->go_on(*outcome);
}
unsigned long long mysql_stmt_affected_rows(MYSQL_STMT* s) {
  return mysql_affected_rows(of(s).over);
}
unsigned mysql_stmt_errno(MYSQL_STMT* s) { return of(s).over->error; }
const char* mysql_stmt_error(MYSQL_STMT* s) { return of(s).over->said.c_str(); }
my_bool mysql_stmt_close(MYSQL_STMT* s) {
  delete &of(s);
  return 0;
}

}  // extern "C"
#endif
