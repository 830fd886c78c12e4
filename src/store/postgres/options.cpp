#include "store/postgres/options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/files.hpp"

namespace holdfast::store::postgres {

namespace {

using option = base::option<postgres_options>;

constexpr const char* usual_port = "5432";
constexpr const char* usual_schema = "public";
constexpr std::size_t longest_schema = 63;  // NAMEDATALEN - 1: the server would truncate it

void add(address& a, std::string_view name, std::string_view value) {
  if (!value.empty()) a.parameters.emplace_back(name, value);
}

status set_schema(postgres_options& o, std::string_view, const std::string& value) {
  if (value.empty() || value.size() > longest_schema) {
    return base::invalid("a schema's name has 1 to 63 bytes");
  }
  return o.schema = value, done{};
}

status set_listen(postgres_options& o, std::string_view, const std::string& value) {
  o.may_listen = value != "never";
  if (value == "auto" || value == "never") return done{};
  if (!value.starts_with("postgres:")) {
    return base::invalid(
        "listen is auto, never, or the URL of the server itself, postgres://host:5432/db");
  }
  const auto u = base::parse_url(value);
  if (u && !u->options.empty()) {
    return base::invalid("the URL in listen has options; those of the URL itself count for both");
  }
  auto there = u ? read_address(*u) : result<address>(u.error());
  if (!there) return std::move(there.error());
  return o.listen = std::move(*there), done{};
}

status hand_on(postgres_options& o, std::string_view name, const std::string& value) {
  return add(o.server, name, value), done{};
}
status hand_on_file(postgres_options& o, std::string_view name, const std::string& value) {
  if (auto ok = base::check_no_fifo(name, value); !ok) return ok;
  return hand_on(o, name, value);
}

std::vector<option> known_options() {
  const auto common = sql::link_option_table<postgres_options>();
  std::vector<option> all(common.begin(), common.end());
  all.push_back({"schema", set_schema});
  all.push_back({"listen", set_listen});
  // libpq's own options.
  for (const char* const name :
       {"host", "hostaddr", "port", "dbname", "user", "service", "sslmode", "sslsni", "gssencmode",
        "channel_binding", "krbsrvname", "target_session_attrs", "application_name"}) {
    all.push_back({name, hand_on});
  }
  for (const char* const name : {"passfile", "sslrootcert", "sslcert", "sslkey", "sslcrl"}) {
    all.push_back({name, hand_on_file});
  }
  return all;
}

}  // namespace

result<address> read_address(const base::store_url& u) {
  if (auto ok = base::needs_servers(u, "postgres://host/database"); !ok) {
    return std::move(ok.error());
  }
  address a;
  const std::string database(u.inner_path());
  std::string hosts, ports;
  if (!u.hosts.empty()) {
    const auto all = u.servers(5432);
    if (!all) return all.error();
    for (const auto& [host, port] : *all) {
      hosts.append(hosts.empty() ? "" : ",").append(host);
      ports.append(ports.empty() ? "" : ",").append(std::to_string(port));
    }
  }
  add(a, "user", u.user);
  add(a, "password", u.password);
  add(a, "host", hosts);
  add(a, "port", ports);
  add(a, "dbname", database);
  return a;
}

std::string value_of(std::string_view name, const address& a) {
  std::string value;
  for (const auto& [known, given] : a.parameters) value = known == name ? given : value;
  return value;
}

namespace {

void keep_alive(address& a, const base::keepalive& k) {
  add(a, "keepalives_idle", std::to_string(k.idle.count()));
  add(a, "keepalives_interval", std::to_string(k.interval.count()));
  add(a, "keepalives_count", std::to_string(k.probes));
  add(a, "tcp_user_timeout", std::to_string(k.unacknowledged.count()));
}

// As libpq takes them: a single port is the port of all hosts.
std::string with_ports(const std::string& hosts, const std::string& ports) {
  const auto each = base::between_commas(ports.empty() ? std::string_view(usual_port) : ports);
  std::string shown;
  std::size_t i = 0;
  for (const auto one : base::between_commas(hosts)) {
    const std::string host(one), port(each[std::min(i++, each.size() - 1)]);
    const bool v6 = host.find(':') != host.npos;
    if (!shown.empty()) shown += ',';
    shown += v6 ? "[" + host + "]" : host;
    shown += ':';
    shown += port;
  }
  return shown;
}

/// The address of the session, whichever part of the URL contains it.
std::string shown_place(base::store_url u, const postgres_options& o) {
  const auto& there = o.server;
  std::string host, port;
  if (u.option("host") != nullptr || u.option("port") != nullptr) {
    host = value_of("host", there);
    port = value_of("port", there);
    const bool socket = host.empty() || host.find_first_of("/@") != host.npos;
    u.hosts = socket ? "" : with_ports(host, port);
    if (!socket) host = port = "";
  }
  u.user = value_of("user", there);
  const std::string database = value_of("dbname", there);
  u.path = database.empty() ? "" : "/" + database;
  return base::shown(u, {{"host", host},
                         {"hostaddr", value_of("hostaddr", there)},
                         {"port", port == usual_port ? "" : port},
                         {"service", value_of("service", there)},
                         {"schema", o.schema == usual_schema ? "" : o.schema},
                         {"mode", sql::shown_mode(o)}});
}

bool names_socket(const base::store_url& u) {
  const std::string* const host = u.option("host");
  return host != nullptr && (host->starts_with('/') || host->starts_with('@'));
}

// libpq would take the last value, and ignore the one that a person reads first.
status says_each_thing_once(const base::store_url& u, const address& in_place) {
  const auto servers = u.servers(0);
  const bool says_port = servers && std::any_of(servers->begin(), servers->end(),
                                                [](const auto& a) { return a.port != 0; });
  const std::array<std::pair<const char*, const char*>, 4> both{
      {{"user", "users"}, {"host", "hosts"}, {"port", "ports"}, {"dbname", "databases"}}};
  for (const auto& [name, what] : both) {
    const bool usual = name == std::string_view("port") && !says_port;
    std::string said = usual ? "" : value_of(name, in_place);
    // A URL that requires a host may have this one beside the folder of a socket.
    if (said == "localhost" && names_socket(u)) said.clear();
    if (auto ok = base::said_alike(u, what, said, name); !ok) return ok;
  }
  return done{};
}

// The options say how to connect, so they count for both servers: a LISTEN has a login as well. The
// URL in `listen` says where, and libpq takes the last value.
void share_options(postgres_options& o, const base::store_url& u) {
  std::vector<std::pair<std::string, std::string>> shared;
  for (const auto& [name, value] : o.server.parameters) {
    constexpr std::array where{"host", "hostaddr", "port", "service"};
    const bool is_place = std::find(where.begin(), where.end(), name) != where.end();
    if (!is_place && u.option(name) != nullptr) shared.emplace_back(name, value);
  }
  o.listen.parameters.insert(o.listen.parameters.begin(), shared.begin(), shared.end());
}

// libpq would ask for the passphrase of a key at the terminal, and wait there without a limit. With
// a wrong one it fails. A service file may have the right one.
void ask_for_no_passphrase(address& a) {
  if (value_of("service", a).empty() && std::getenv("PGSERVICE") == nullptr)
    add(a, "sslpassword", "none");
}

}  // namespace

result<postgres_options> read_options(const base::store_url& u) {
  auto server = read_address(u);
  if (!server) return std::move(server.error());
  if (auto ok = says_each_thing_once(u, *server); !ok) return std::move(ok.error());
  postgres_options o;
  o.server = std::move(*server);
  const auto known = known_options();
  if (auto ok = base::read_options<postgres_options>(u, known, o); !ok) {
    return std::move(ok.error());
  }
  if (!o.listen.parameters.empty()) {
    share_options(o, u);
    ask_for_no_passphrase(o.listen);
    keep_alive(o.listen, sql::keepalive_of(o));
  }
  ask_for_no_passphrase(o.server);
  keep_alive(o.server, sql::keepalive_of(o));
  o.url = shown_place(u, o);
  return o;
}

}  // namespace holdfast::store::postgres
