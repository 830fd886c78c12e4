#include "store/postgres/options.hpp"

#include <algorithm>
#include <array>

#include "store/files/files.hpp"

namespace holdfast::store::postgres {

namespace {

constexpr std::array libpq_options{std::string_view("host"),
                                   std::string_view("hostaddr"),
                                   std::string_view("port"),
                                   std::string_view("dbname"),
                                   std::string_view("user"),
                                   std::string_view("passfile"),
                                   std::string_view("service"),
                                   std::string_view("sslmode"),
                                   std::string_view("sslrootcert"),
                                   std::string_view("sslcert"),
                                   std::string_view("sslkey"),
                                   std::string_view("sslcrl"),
                                   std::string_view("sslsni"),
                                   std::string_view("gssencmode"),
                                   std::string_view("channel_binding"),
                                   std::string_view("krbsrvname"),
                                   std::string_view("target_session_attrs"),
                                   std::string_view("application_name")};
constexpr std::array file_options{std::string_view("passfile"), std::string_view("sslrootcert"),
                                  std::string_view("sslcert"), std::string_view("sslkey"),
                                  std::string_view("sslcrl")};
constexpr std::array own_options{std::string_view("schema"), std::string_view("listen")};
constexpr std::size_t longest_schema = 63;  // NAMEDATALEN - 1: the server would cut it

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

void add(address& a, std::string_view name, std::string_view value) {
  if (!value.empty()) a.parameters.emplace_back(name, value);
}

status set_schema(postgres_options& o, const std::string& value) {
  if (value.empty() || value.size() > longest_schema) {
    return bad("a schema's name has 1 to 63 bytes");
  }
  o.schema = value;
  return done{};
}

status set_listen(postgres_options& o, std::string_view value) {
  o.may_listen = value != "never";
  if (value == "auto" || value == "never") return done{};
  if (!value.starts_with("postgres:")) {
    return bad("listen is auto, never, or the URL of the server itself, postgres://host:5432/db");
  }
  auto parsed = parse_address(value.substr(value.find(':') + 1));
  if (!parsed) return std::move(parsed.error());
  o.listen = std::move(*parsed);
  return done{};
}

template <class List>
bool is_among(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

result<address> parse_address(std::string_view rest) {
  auto where = sql::parse_place("postgres", rest, 5432);
  if (!where) return std::move(where.error());
  address a;
  a.shown = std::move(where->shown);
  std::string hosts, ports;
  for (const auto& [name, port] : where->hosts) {
    hosts.append(hosts.empty() ? "" : ",").append(name);
    ports.append(ports.empty() ? "" : ",").append(std::to_string(port));
  }
  add(a, "user", where->user);
  add(a, "password", where->password);
  add(a, "host", hosts);
  if (!hosts.empty()) add(a, "port", ports);
  add(a, "dbname", where->database);
  return a;
}

status set_option(postgres_options& o, std::string_view name, const std::string& value) {
  if (auto common = sql::set_option(o, name, value)) return std::move(*common);
  if (name == "schema") return set_schema(o, value);
  if (name == "listen") return set_listen(o, value);
  if (is_among(libpq_options, name)) {
    if (is_among(file_options, name)) {
      if (auto ok = files::check_no_fifo(name, value); !ok) return ok;
    }
    add(o.server, name, value);
    return done{};
  }
  return bad("there is no option '" + std::string(name) + "'");
}

std::vector<std::string_view> known_options() {
  std::vector<std::string_view> all(sql::link_option_names.begin(), sql::link_option_names.end());
  all.insert(all.end(), own_options.begin(), own_options.end());
  all.insert(all.end(), libpq_options.begin(), libpq_options.end());
  return all;
}

}  // namespace holdfast::store::postgres
