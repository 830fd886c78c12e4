#include "store/mariadb/options.hpp"

#include <array>

#include "store/files/files.hpp"

namespace holdfast::store::mariadb {

namespace {

constexpr std::size_t longest_database = 64;

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

struct text_option {
  std::string_view name;
  std::string mariadb_options::* where;
};
constexpr std::array texts{text_option{"socket", &mariadb_options::socket},
                           text_option{"defaults_file", &mariadb_options::defaults_file},
                           text_option{"ssl_ca", &mariadb_options::ssl_ca},
                           text_option{"ssl_cert", &mariadb_options::ssl_cert},
                           text_option{"ssl_key", &mariadb_options::ssl_key}};

status set_tls(mariadb_options& o, std::string_view value) {
  if (value == "require") return o.tls = tls::require, done{};
  if (value == "verify") return o.tls = tls::verify, done{};
  return bad("tls is require or verify; without it the option files decide");
}

}  // namespace

result<mariadb_options> parse_address(std::string_view scheme, std::string_view rest) {
  auto where = sql::parse_place(scheme, rest, 3306);
  if (!where) return std::move(where.error());
  if (where->hosts.size() > 1) return bad("names several hosts; write one");
  if (where->database.empty() || where->database.size() > longest_database) {
    return bad("needs the name of a database: " + std::string(scheme) + "://host/database");
  }
  mariadb_options o;
  o.user = std::move(where->user);
  o.password = std::move(where->password);
  o.database = std::move(where->database);
  o.url = std::move(where->shown);
  if (!where->hosts.empty()) {
    o.host = std::move(where->hosts.front().name);
    o.port = where->hosts.front().port;
  }
  return o;
}

status set_option(mariadb_options& o, std::string_view name, const std::string& value) {
  if (auto common = sql::set_option(o, name, value)) return std::move(*common);
  if (name == "tls") return set_tls(o, value);
  for (const auto& [known, where] : texts) {
    if (known != name) continue;
    if (auto ok = files::check_no_fifo(name, value); !ok) return ok;
    return o.*where = value, done{};
  }
  return bad("there is no option '" + std::string(name) + "'");
}

std::vector<std::string_view> known_options() {
  std::vector<std::string_view> all(sql::link_option_names.begin(), sql::link_option_names.end());
  all.push_back("tls");
  for (const auto& t : texts) all.push_back(t.name);
  return all;
}

}  // namespace holdfast::store::mariadb
