#include "harness/least_rights.hpp"
#include "harness/eventually.hpp"
#include "paths.hpp"

#ifdef HOLDFAST_WITH_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef HOLDFAST_WITH_MARIADB
#include <mysql.h>
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
#define THREADED
#include <zookeeper/zookeeper.h>
#endif

#include <fstream>
#include <future>
#include <holdfast/holdfast.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string_view>
#include <vector>

namespace harness {

namespace {

constexpr std::string_view user = "least";
#ifdef HOLDFAST_WITH_ZOOKEEPER
// The form in which the servers store it: the password is "pw", and the hash is that of "least:pw".
constexpr const char* login_at_zookeeper = "least:+EAXeQ+qEbefzjyr1eYzmBZEOXM=";
#endif

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

#ifdef HOLDFAST_WITH_POSTGRES
// The server runs a process for each connection, so one is kept. It is never closed: a forked child
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
  // A pooler gives the connection to the next client when the transaction ends, with all settings
  // that last longer.
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

#ifdef HOLDFAST_WITH_ZOOKEEPER
int permission(char letter) {
  switch (letter) {
    case 'c':
      return ZOO_PERM_CREATE;
    case 'r':
      return ZOO_PERM_READ;
    case 'w':
      return ZOO_PERM_WRITE;
    case 'd':
      return ZOO_PERM_DELETE;
    default:
      throw std::runtime_error(std::string("ZooKeeper has no right called ") + letter);
  }
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
    // In the library's order: a request of the test before may still be carried out.
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

// Parses statements such as grant PRIVILEGE, PRIVILEGE on OBJECT to app;
std::vector<right> each_right_on_page(const std::string& page) {
  std::vector<right> all;
  std::istringstream statements(rights_on_page(page));
  for (std::string one; std::getline(statements, one, ';');) {
    const auto on = one.find(" on "), to = one.find(" to ");
    std::istringstream privileges(
        one.substr(std::string_view("grant ").size(), on - std::string_view("grant ").size()));
    const auto object = one.substr(on + 4, to - on - 4);
    for (std::string p; std::getline(privileges >> std::ws, p, ',');) all.push_back({p, object});
  }
  return all;
}

std::string code_on_page(const std::string& page, const std::string& behind) {
  std::ifstream in(std::string(HOLDFAST_SOURCE_DIR) + "/docs/stores/" + page + ".md");
  std::ostringstream all;
  all << in.rdbuf();
  const auto text = all.str();
  const auto at = text.find(behind);
  if (at == text.npos) throw std::runtime_error("docs/stores/" + page + ".md lacks " + behind);
  const auto from = at + behind.size();
  return text.substr(from, text.find('`', from) - from);
}

std::vector<std::string> etcd_rights_on_page() {
  const std::string program = "etcdctl ";
  std::istringstream block(code_on_page("etcd",
                                        "these commands from this page:\n\n"
                                        "<!-- sh: not run: needs an etcd -->\n```sh\n"));
  std::vector<std::string> all;
  for (std::string line; std::getline(block, line);) {
    if (!line.starts_with(program)) throw std::runtime_error("docs/stores/etcd.md: " + line);
    all.push_back(line.substr(program.size()));
  }
  return all;
}

std::vector<std::string> etcd_user_of_least_rights(const std::string& prefix) {
  std::vector<std::string> all{"user add root:pw", "user grant-role root root"};
  for (auto command : etcd_rights_on_page()) {
    command = replaced(command, "/locks/", "/" + prefix);
    command = replaced(command, " app", " " + std::string(user));
    all.push_back(replaced(command, "SECRET", "pw"));
  }
  all.emplace_back("auth enable");
  return all;
}

#ifdef HOLDFAST_WITH_ZOOKEEPER
// Closed at once: a handle has threads, and tests fork.
std::string zookeeper_base(const std::string& url, const std::string& path,
                           const std::string& letters) {
  const auto hosts = url.substr(url.find("//") + 2);
  const std::unique_ptr<zhandle_t, int (*)(zhandle_t*)> administrator(
      zookeeper_init2(
          hosts.c_str(), [](zhandle_t*, int, int, const char*, void*) {}, 10'000, nullptr, nullptr,
          0, [](const char*) {}),
      &zookeeper_close);
  if (!administrator) throw std::runtime_error("no ZooKeeper handle");
  eventually("a connection to ZooKeeper",
             [&] { return zoo_state(administrator.get()) == ZOO_CONNECTED_STATE; });
  struct ACL may{0, {const_cast<char*>("digest"), const_cast<char*>(login_at_zookeeper)}};
  for (const char letter : letters) may.perms |= permission(letter);
  const ACL_vector rights{1, &may};
  const int rc = zoo_create(administrator.get(), ("/" + path).c_str(), "", 0, &rights,
                            ZOO_PERSISTENT, nullptr, 0);
  if (rc != ZOK) throw std::runtime_error("the base path " + path + ": " + zerror(rc));
  return replaced(url, "//", "//least:pw@") + "/" + path;
}
#endif

std::string store_of_least_rights(const std::string& url, const std::string& store) {
#ifdef HOLDFAST_WITH_ETCD
  if (url.starts_with("etcd:")) return replaced(url, "//", "//least:pw@") + "/" + store;
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
  if (url.starts_with("zookeeper:")) {
    return zookeeper_base(url, store, code_on_page("zookeeper", "On the base path: `"));
  }
#endif
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

void use_everything(const std::string& url, const std::string& name) {
  auto s = holdfast::open(url);
  holdfast::mutex m{s, name};
  for (int i = 0; i < 2; ++i) {
    holdfast::lease held = m.acquire();
    if (const auto e = held.release())
      throw holdfast::error(
          {static_cast<holdfast::errc>(e.value()), "the release: " + e.message()});
  }
  holdfast::latch l{s, name + "-latch", 1};
  l.count_down();
  l.remove();
  // A latch leaves its arrivals behind; one that somebody waited for leaves a free row.
  holdfast::latch waited{s, name + "-waited", 1};
  (void)waited.wait_for(std::chrono::milliseconds(1));
  waited.remove();
  // The second name is locked together with the first, which is held, and must leave nothing
  // behind.
  holdfast::mutex first{s, name + "-1"};
  const auto held = first.acquire();
  auto other = holdfast::open(url);
  holdfast::mutex rival{other, name + "-1"}, behind{other, name + "-2"};
  holdfast::multi_lock both{rival, behind};
  std::stop_source enough;
  auto wait = async_acquire(both, {}, enough.get_token()).future();
  eventually("it waits", [&] {
    return wait.wait_for(std::chrono::seconds(0)) == std::future_status::ready ||
           s.show(name + "-1").waiters.size() == 1;
  });
  enough.request_stop();
  auto how = wait.get();
  if (!how && how.error().code != holdfast::errc::cancelled) throw_failure(std::move(how.error()));
  (void)s.show(name);
  (void)s.names();
}

}  // namespace harness
