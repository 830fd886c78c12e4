#include "store/memcached/options.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::store::memcached {

namespace {

failure bad(std::string what) { return {errc::invalid_argument, "memcached: " + std::move(what)}; }

status take_port(std::string_view text, address& a) {
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, a.port);
  if (wrong == std::errc{} && after == end && a.port != 0) return done{};
  return bad("what is behind the colon is not a port; ports go from 1 to 65535");
}

// host, host:port, [v6], [v6]:port
result<address> parse_server(std::string_view text) {
  address a;
  const bool v6 = text.starts_with('[');
  const auto host_ends = v6 ? text.find(']') : std::min(text.rfind(':'), text.size());
  if (host_ends == text.npos) return bad("an IPv6 address needs its closing ]");
  a.host = text.substr(v6 ? 1 : 0, host_ends - (v6 ? 1 : 0));
  auto port = text.substr(std::min(host_ends + (v6 ? 1 : 0), text.size()));
  if (a.host.empty()) {
    return bad("needs the address of a server; write memcached://h1,h2:11211");
  }
  if (port.empty()) return a;
  if (!port.starts_with(':')) return bad("after ] comes :port or nothing");
  port.remove_prefix(1);
  if (auto ok = take_port(port, a); !ok) return std::move(ok.error());
  return a;
}

}  // namespace

std::string to_string(const address& a) {
  const bool v6 = a.host.find(':') != a.host.npos;
  return (v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

result<memcached_options> parse_address(std::string_view rest) {
  memcached_options o;
  if (!rest.starts_with("//")) {
    return bad("needs the address of a server; write memcached://h1,h2:11211");
  }
  rest.remove_prefix(2);
  if (rest.find('@') != rest.npos) {
    return bad("has no users here; keep the server on a private network");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('/') != rest.npos) {
    return bad("has no databases; tell locks apart by ?prefix=");
  }
  while (true) {
    const auto comma = std::min(rest.find(','), rest.size());
    auto server = parse_server(rest.substr(0, comma));
    if (!server) return std::move(server.error());
    o.servers.push_back(std::move(*server));
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  // The order in which they are written is nobody's business.
  std::sort(o.servers.begin(), o.servers.end());
  if (std::adjacent_find(o.servers.begin(), o.servers.end()) != o.servers.end()) {
    return bad("names the same server twice");
  }
  for (const auto& s : o.servers) o.url += (o.url.empty() ? "memcached://" : ",") + to_string(s);
  return o;
}

status set_prefix(memcached_options& o, const std::string& value) {
  const auto plain = [](char c) { return c > ' ' && c < 0x7F && c != '%' && c != ':'; };
  const bool fits = !value.empty() && value.size() <= 32;
  if (fits && std::all_of(value.begin(), value.end(), plain)) {
    return o.prefix = value, done{};
  }
  return bad("a prefix has 1 to 32 printable bytes of ASCII, without spaces, colons and %");
}

// To a socket, zero is for ever.
status check_options(const memcached_options& o) {
  using namespace std::chrono_literals;
  for (const auto timeout : {o.connect_timeout, o.command_timeout}) {
    if (timeout < 1ms || timeout > 24h) {
      return bad("connect_timeout and command_timeout go from 1ms to 24h");
    }
  }
  return done{};
}

}  // namespace holdfast::store::memcached
