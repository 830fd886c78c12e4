#include "store/postgres/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>

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
constexpr std::array own_options{std::string_view("schema"), std::string_view("connections"),
                                 std::string_view("listen"), std::string_view("connect_timeout"),
                                 std::string_view("command_timeout")};
constexpr std::size_t most_connections = 100;
constexpr std::size_t longest_schema = 63;  // NAMEDATALEN - 1: the server would cut it

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

std::string_view cut_off(std::string_view& rest, char at) {
  const auto found = rest.find(at);
  if (found == rest.npos) return {};
  const auto tail = rest.substr(found + 1);
  rest = rest.substr(0, found);
  return tail;
}

void add(address& a, std::string_view name, std::string_view value) {
  if (!value.empty()) a.parameters.emplace_back(name, value);
}

void take_credentials(std::string_view& rest, address& a) {
  const auto at = rest.rfind('@');
  if (at == rest.npos) return;
  auto user = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const auto password = cut_off(user, ':');
  add(a, "user", user);
  add(a, "password", password);
  if (!user.empty()) a.shown.append(user).append("@");
}

std::string without_brackets(std::string_view host) {
  const bool v6 = host.starts_with('[') && host.ends_with(']');
  return std::string(v6 ? host.substr(1, host.size() - 2) : host);
}

status take_host(std::string_view one, std::string& hosts, std::string& ports) {
  const auto bracket = one.rfind(']');
  const auto colon = one.rfind(':');
  std::string_view port;
  if (colon != one.npos && (bracket == one.npos || colon > bracket)) {
    port = one.substr(colon + 1);
    one = one.substr(0, colon);
  }
  if (one.find(':') != one.npos && bracket == one.npos) {
    return bad("an IPv6 address is written in brackets: [::1]:5432");
  }
  std::uint16_t number = 0;
  const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (!port.empty() && (wrong != std::errc{} || end != port.data() + port.size() || number == 0)) {
    return bad("'" + std::string(port) + "' is not a port; ports go from 1 to 65535");
  }
  hosts.append(hosts.empty() ? "" : ",").append(without_brackets(one));
  ports.append(ports.empty() ? "" : ",").append(port.empty() ? "5432" : port);
  return done{};
}

status take_hosts(std::string_view rest, address& a) {
  a.shown += rest;
  std::string hosts, ports;
  while (!rest.empty()) {
    const auto others = cut_off(rest, ',');
    if (auto ok = take_host(rest, hosts, ports); !ok) return ok;
    rest = others;
  }
  add(a, "host", hosts);
  if (!hosts.empty()) add(a, "port", ports);
  return done{};
}

status set_timeout(std::chrono::milliseconds& to, std::string_view name, std::string_view text) {
  const bool in_ms = text.ends_with("ms");
  const auto digits = text.substr(0, text.size() - (in_ms ? 2 : text.ends_with('s') ? 1 : 0));
  double number = 0;
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const double ms = number * (in_ms ? 1 : 1000);
  if (wrong != std::errc{} || end != digits.data() + digits.size() || !(ms >= 1) || ms > 86.4e6) {
    return bad("'" + std::string(text) + "' is no " + std::string(name) +
               "; write 500ms or 2s, up to a day");
  }
  to = std::chrono::milliseconds(static_cast<std::int64_t>(ms));
  return done{};
}

status set_schema(postgres_options& o, const std::string& value) {
  if (value.empty() || value.size() > longest_schema) {
    return bad("a schema's name has 1 to 63 bytes");
  }
  o.schema = value;
  return done{};
}

status set_connections(postgres_options& o, const std::string& value) {
  const char* const end = value.data() + value.size();
  std::size_t number = 0;
  const auto [after, wrong] = std::from_chars(value.data(), end, number);
  if (wrong != std::errc{} || after != end || number < 1 || number > most_connections) {
    return bad("connections is a number from 1 to 100");
  }
  o.connections = number;
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
  if (!rest.starts_with("//")) return bad("postgres: needs an address; write postgres://host/db");
  rest.remove_prefix(2);
  address a;
  a.shown = "postgres://";
  take_credentials(rest, a);
  const auto database = cut_off(rest, '/');
  if (auto ok = take_hosts(rest, a); !ok) return std::move(ok.error());
  add(a, "dbname", database);
  if (!database.empty()) a.shown.append("/").append(database);
  return a;
}

status set_option(postgres_options& o, std::string_view name, const std::string& value) {
  if (name == "schema") return set_schema(o, value);
  if (name == "connections") return set_connections(o, value);
  if (name == "listen") return set_listen(o, value);
  if (name == "connect_timeout") return set_timeout(o.connect_timeout, name, value);
  if (name == "command_timeout") return set_timeout(o.command_timeout, name, value);
  if (is_among(libpq_options, name)) {
    add(o.server, name, value);
    return done{};
  }
  return bad("there is no option '" + std::string(name) + "'");
}

std::vector<std::string_view> known_options() {
  std::vector<std::string_view> all(own_options.begin(), own_options.end());
  all.insert(all.end(), libpq_options.begin(), libpq_options.end());
  return all;
}

}  // namespace holdfast::store::postgres
