#include "store/sql/options.hpp"

#include <charconv>

namespace holdfast::store::sql {

namespace {

constexpr std::size_t most_connections = 100;
constexpr std::chrono::milliseconds shortest_silence{3'000};

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

std::string_view cut_off(std::string_view& rest, char at) {
  const auto found = rest.find(at);
  if (found == rest.npos) return {};
  const auto tail = rest.substr(found + 1);
  rest = rest.substr(0, found);
  return tail;
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, number);
  return wrong == std::errc{} && after == end;
}

void take_credentials(std::string_view& rest, place& p) {
  const auto at = rest.rfind('@');
  if (at == rest.npos) return;
  auto user = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  p.password = cut_off(user, ':');
  p.user = user;
  if (!user.empty()) p.shown.append(user).append("@");
}

std::string_view without_brackets(std::string_view host) {
  const bool v6 = host.starts_with('[') && host.ends_with(']');
  return v6 ? host.substr(1, host.size() - 2) : host;
}

result<place::host> parse_host(std::string_view text, std::uint16_t usual_port) {
  const auto bracket = text.rfind(']');
  const auto colon = text.rfind(':');
  std::string_view port;
  if (colon != text.npos && (bracket == text.npos || colon > bracket)) {
    port = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  if (text.find(':') != text.npos && bracket == text.npos) {
    return bad("an IPv6 address is written in brackets: [::1]");
  }
  std::uint16_t number = usual_port;
  if (!port.empty() && (!parse_number(port, number) || number == 0)) {
    return bad("what is behind the colon is not a port; ports go from 1 to 65535");
  }
  return place::host{std::string(without_brackets(text)), number};
}

// `500ms`, `2s`, or a number of seconds.
status set_timeout(std::chrono::milliseconds& to, std::string_view option, std::string_view text) {
  const bool in_ms = text.ends_with("ms");
  const auto digits = text.substr(0, text.size() - (in_ms ? 2 : text.ends_with('s') ? 1 : 0));
  double number = 0;
  const bool good = parse_number(digits, number);
  const double ms = number * (in_ms ? 1 : 1000);
  if (!good || ms < 1 || ms > 86.4e6) {
    return bad("'" + std::string(text) + "' is no " + std::string(option) +
               "; write 500ms or 2s, up to a day");
  }
  to = std::chrono::milliseconds(static_cast<std::int64_t>(ms));
  return done{};
}

status set_mode(bool& session, std::string_view text) {
  session = text == "session";
  if (session || text == "lease") return done{};
  return bad("mode is lease (rows with a lease) or session (the server's own locks)");
}

status set_silence(std::chrono::milliseconds& to, std::string_view text) {
  auto set = set_timeout(to, "session", text);
  if (set && to < shortest_silence) return bad("session is 3s at least, and a day at most");
  return set;
}

status set_connections(std::size_t& to, std::string_view text) {
  if (parse_number(text, to) && to >= 1 && to <= most_connections) return done{};
  return bad("connections is a number from 1 to 100");
}

}  // namespace

result<place> parse_place(std::string_view scheme, std::string_view rest,
                          std::uint16_t usual_port) {
  place p;
  p.shown = std::string(scheme) + "://";
  if (!rest.starts_with("//")) {
    return bad(std::string(scheme) + ": needs an address; write " + p.shown + "host/database");
  }
  rest.remove_prefix(2);
  take_credentials(rest, p);
  p.database = cut_off(rest, '/');
  p.shown += rest;
  if (!p.database.empty()) p.shown.append("/").append(p.database);
  while (!rest.empty()) {
    const auto others = cut_off(rest, ',');
    auto one = parse_host(rest, usual_port);
    if (!one) return std::move(one.error());
    p.hosts.push_back(std::move(*one));
    rest = others;
  }
  return p;
}

std::optional<status> set_option(link_options& o, std::string_view name, std::string_view value) {
  if (name == "connections") return set_connections(o.connections, value);
  if (name == "connect_timeout") return set_timeout(o.connect_timeout, name, value);
  if (name == "command_timeout") return set_timeout(o.command_timeout, name, value);
  if (name == "mode") return set_mode(o.session_mode, value);
  if (name == "session") return set_silence(o.silence, value);
  return std::nullopt;
}

}  // namespace holdfast::store::sql
