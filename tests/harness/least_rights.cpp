#include "harness/least_rights.hpp"
#include "paths.hpp"

#ifdef HOLDFAST_WITH_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef HOLDFAST_WITH_MARIADB
#include <mysql.h>
#endif

#include <fstream>
#include <holdfast/holdfast.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace harness {

namespace {

constexpr std::string_view user = "least";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

#ifdef HOLDFAST_WITH_POSTGRES
// A process of the server for each connection: one is kept. It is never closed, as a forked child
// that closed it would close its parent's.
PGconn* connection_to(const std::string& url) {
  static auto& open = *new std::map<std::string, PGconn*>;
  PGconn*& c = open[url];
  if (c == nullptr) {
    c = PQconnectdb(url.c_str());
    PQsetNoticeReceiver(c, [](void*, const PGresult*) {}, nullptr);
  } else if (PQstatus(c) != CONNECTION_OK) {
    PQreset(c);
  }
  return c;
}

void ask_postgres(const std::string& url, const std::string& statements) {
  PGconn* const c = connection_to(url);
  const std::unique_ptr<PGresult, void (*)(PGresult*)> r(PQexec(c, statements.c_str()), &PQclear);
  if (PQresultStatus(r.get()) != PGRES_COMMAND_OK) {
    throw std::runtime_error(statements + ": " + PQerrorMessage(c));
  }
}

std::string in_postgres(const std::string& url, const std::string& schema) {
  (void)holdfast::open(url + "?listen=never&schema=" + schema);
  const std::string grants =
      replaced(rights_on_page("postgres"), " public ", " \"" + schema + "\" ");
  // A pooler gives the connection to the next when the transaction ends, with all that lasts
  // longer.
  ask_postgres(
      url, "begin; select pg_advisory_xact_lock(1); do 'begin create role " + std::string(user) +
               " login; exception when duplicate_object then null; end'; set local search_path "
               "to \"" +
               schema + "\"; " + replaced(grants, " app;", " " + std::string(user) + ";") +
               "; commit");
  return replaced(url, "postgres@", std::string(user) + "@") + "?schema=" + schema;
}
#endif

#ifdef HOLDFAST_WITH_MARIADB
void ask_mariadb(int port, const std::string& statements) {
  const std::unique_ptr<MYSQL, void (*)(MYSQL*)> c(mysql_init(nullptr), &mysql_close);
  int failed =
      mysql_real_connect(c.get(), "127.0.0.1", "admin", "", nullptr, static_cast<unsigned>(port),
                         nullptr, CLIENT_MULTI_STATEMENTS) == nullptr;
  if (failed == 0) failed = mysql_real_query(c.get(), statements.data(), statements.size());
  while (failed == 0) {
    mysql_free_result(mysql_store_result(c.get()));
    failed = mysql_next_result(c.get());
  }
  if (failed > 0) throw std::runtime_error(statements + ": " + mysql_error(c.get()));
}

std::string in_mariadb(const std::string& url, const std::string& database) {
  (void)holdfast::open(url + database);
  const std::string name = std::string(user) + "@'%'";
  const std::string grants = replaced(rights_on_page("mariadb"), " locks.", " `" + database + "`.");
  ask_mariadb(
      std::stoi(url.substr(url.rfind(':') + 1)),
      "create user if not exists " + name + "; " + replaced(grants, " app;", " " + name + ";"));
  return replaced(url, "admin@", std::string(user) + "@") + database;
}
#endif

/// A store on a server, for the administrator.
struct lendable {
  std::string server, store;
};

struct {
  std::mutex mutex;
  std::map<std::string, lendable> made;                  // by the URL that is lent
  std::map<std::string, std::vector<std::string>> idle;  // by server
} lent_stores;

void empty_store(const lendable& l) {
  const auto statements = [&](const std::string& quote) {
    const std::string in = quote + l.store + quote + ".holdfast_";
    // In the order of the library: a request of the test before may still be carried out.
    return "update " + in + "meta set fence_floor = 0; delete from " + in + "records";
  };
#ifdef HOLDFAST_WITH_POSTGRES
  if (l.server.starts_with("postgres:")) return ask_postgres(l.server, statements("\""));
#endif
#ifdef HOLDFAST_WITH_MARIADB
  ask_mariadb(std::stoi(l.server.substr(l.server.rfind(':') + 1)), statements("`"));
#endif
}

}  // namespace

std::string rights_on_page(const std::string& page) {
  std::ifstream in(std::string(HOLDFAST_SOURCE_DIR) + "/docs/stores/" + page + ".md");
  std::string all;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("grant ")) all += line;
  }
  if (all.empty()) throw std::runtime_error("docs/stores/" + page + ".md grants nothing");
  return all;
}

std::string store_of_least_rights(const std::string& url, const std::string& store) {
#ifdef HOLDFAST_WITH_POSTGRES
  if (url.starts_with("postgres:")) return in_postgres(url, store);
#endif
#ifdef HOLDFAST_WITH_MARIADB
  if (url.starts_with("mariadb:")) return in_mariadb(url, store);
#endif
  throw std::invalid_argument("no rights are known for " + url);
}

std::string lend_store_of_least_rights(const std::string& url, const std::string& store) {
  const std::lock_guard guard{lent_stores.mutex};
  auto& idle = lent_stores.idle[url];
  if (idle.empty()) {
    const auto made = store_of_least_rights(url, store);
    lent_stores.made.emplace(made, lendable{url, store});
    return made;
  }
  const auto lent = std::move(idle.back());
  idle.pop_back();
  empty_store(lent_stores.made.at(lent));
  return lent;
}

void give_back_store(const std::string& lent) {
  const std::lock_guard guard{lent_stores.mutex};
  lent_stores.idle[lent_stores.made.at(lent).server].push_back(lent);
}

}  // namespace harness
