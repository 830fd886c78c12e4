#include "store/mariadb/options.hpp"

#include <vector>

namespace holdfast::store::mariadb {

namespace {

constexpr std::size_t longest_database = 64;

status set_tls(mariadb_options& o, std::string_view, const std::string& value) {
  if (value == "require") return o.tls = tls::require, done{};
  if (value == "verify") return o.tls = tls::verify, done{};
  return base::invalid("tls is require or verify; without it the option files decide");
}

std::vector<base::option<mariadb_options>> known_options() {
  using own = mariadb_options;
  const auto common = sql::link_option_table<own>();
  std::vector<base::option<own>> all(common.begin(), common.end());
  all.insert(all.end(), {{"tls", set_tls},
                         base::path_option<own, &own::socket>("socket"),
                         base::path_option<own, &own::defaults_file>("defaults_file"),
                         base::path_option<own, &own::ssl_ca>("ssl_ca"),
                         base::path_option<own, &own::ssl_cert>("ssl_cert"),
                         base::path_option<own, &own::ssl_key>("ssl_key")});
  return all;
}

}  // namespace

result<mariadb_options> read_options(const base::store_url& u) {
  if (auto ok = base::needs_servers(u, u.scheme + "://host/database"); !ok) {
    return std::move(ok.error());
  }
  mariadb_options o;
  if (!u.hosts.empty()) {
    auto hosts = u.servers(3306);
    if (!hosts) return std::move(hosts.error());
    if (hosts->size() > 1) return base::invalid(u.scheme + ": takes one host");
    o.host = std::move(hosts->front().host);
    o.port = hosts->front().port;
  }
  o.user = u.user;
  o.password = u.password;
  o.database = u.inner_path();
  if (o.database.empty() || o.database.size() > longest_database) {
    return base::invalid(u.scheme + ": needs the name of a database: " + u.scheme +
                         "://host/database");
  }
  const auto known = known_options();
  if (auto ok = base::read_options<mariadb_options>(u, known, o); !ok) {
    return std::move(ok.error());
  }
  if (!o.socket.empty() && !o.host.empty() && base::lower(o.host) != "localhost") {
    return base::invalid("names a host and a socket= of this machine; leave one of them out");
  }
  base::store_url place = u;
  place.path = "/" + o.database;
  o.url = base::shown(place, {{"socket", o.socket},
                              {"defaults_file", u.hosts.empty() ? o.defaults_file : ""},
                              {"mode", sql::shown_mode(o)}});
  return o;
}

}  // namespace holdfast::store::mariadb
