#include "store/zookeeper/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "store/files/files.hpp"

namespace holdfast::store::zookeeper {

namespace {

using namespace std::chrono_literals;

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

status add_host(zookeeper_options& o, std::string_view one) {
  const auto colon = one.starts_with('[') ? one.find(':', one.find(']')) : one.rfind(':');
  const auto host = one.substr(0, colon);
  const auto port = colon == one.npos ? "2181" : one.substr(colon + 1);
  if (host.empty()) return bad("names no host; write zookeeper://h1,h2,h3/locks");
  if (host.find(':') != host.npos && !host.starts_with('[')) {
    return bad("an IPv6 address is written in brackets: [::1]:2181");
  }
  std::uint16_t number = 0;
  const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (wrong != std::errc{} || end != port.data() + port.size() || number == 0) {
    return bad("what is behind the colon is not a port; ports go from 1 to 65535");
  }
  o.hosts += (o.hosts.empty() ? "" : ",") + std::string(host) + ":" + std::string(port);
  return done{};
}

bool is_path(std::string_view base) {
  const auto below_space = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  return base.find("//") == base.npos && base.find("/./") == base.npos &&
         base.find("/../") == base.npos && std::none_of(base.begin(), base.end(), below_space);
}

status take_base(zookeeper_options& o, std::string_view base) {
  while (base.ends_with('/')) base.remove_suffix(1);
  if (!is_path(std::string(base) + "/")) {
    return bad("what is behind the hosts is no path of a node: no empty part, no . and ..");
  }
  if (base == "/zookeeper" || base.starts_with("/zookeeper/")) {
    return bad("/zookeeper belongs to the server: choose another base path");
  }
  o.base = base;
  return done{};
}

void take_credentials(zookeeper_options& o, std::string_view& rest) {
  const auto at = rest.rfind('@');  // a password may hold a /
  if (at == rest.npos) return;
  const auto credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const auto colon = std::min(credentials.find(':'), credentials.size());
  o.user = credentials.substr(0, colon);
  if (colon < credentials.size()) o.password = credentials.substr(colon + 1);
}

status password_from_environment(zookeeper_options& o, const std::string& name) {
  const char* const found = std::getenv(name.c_str());
  if (found == nullptr || *found == '\0') {
    return bad("the password is to be in the environment as " + name + ", and is not");
  }
  o.password = found;
  return done{};
}

status password_from_file(zookeeper_options& o, const std::string& path) {
  auto line = files::first_line(path);
  if (!line) return bad("cannot read the password from " + path + ": " + line.error().what);
  if (line->empty()) return bad("no password can be read from the file " + path);
  return o.password = std::move(*line), done{};
}

}  // namespace

result<zookeeper_options> parse_address(std::string_view rest) {
  if (!rest.starts_with("//")) return bad("zookeeper: needs servers: zookeeper://h1,h2,h3/locks");
  rest.remove_prefix(2);
  zookeeper_options o;
  take_credentials(o, rest);
  const auto slash = std::min(rest.find('/'), rest.size());
  if (auto ok = take_base(o, rest.substr(slash)); !ok) return std::move(ok.error());
  for (auto hosts = rest.substr(0, slash);;) {
    const auto comma = std::min(hosts.find(','), hosts.size());
    if (auto ok = add_host(o, hosts.substr(0, comma)); !ok) return std::move(ok.error());
    if (comma == hosts.size()) break;
    hosts.remove_prefix(comma + 1);
  }
  o.private_acl = !o.user.empty();
  o.url = "zookeeper://" + (o.user.empty() ? "" : o.user + "@") + o.hosts + o.base;
  return o;
}

status set_option(zookeeper_options& o, std::string_view name, const std::string& value) {
  if (name == "password_env") return password_from_environment(o, value);
  if (name == "password_file") return password_from_file(o, value);
  if (name == "acl" && (value == "open" || value == "creator")) {
    return o.private_acl = value == "creator", done{};
  }
  if (name == "acl") return bad("acl='" + value + "' is none of open and creator");
  return bad("there is no option '" + std::string(name) + "'");
}

status check_options(zookeeper_options& o) {
  if (o.user.empty() != o.password.empty()) {
    return bad(
        "a user and a password come together: zookeeper://user:password@h1,h2/locks, or "
        "?password_env= or ?password_file=");
  }
  if (o.private_acl && o.user.empty()) {
    return bad("acl=creator needs a user: zookeeper://user:password@h1,h2/locks");
  }
  if (o.session < 100ms || o.session > 24h) {
    return bad("session=" + std::to_string(o.session.count()) + " ms: from 100ms to 24h");
  }
  for (const auto timeout : {o.connect_timeout, o.command_timeout}) {
    if (timeout < 1ms || timeout > 24h) {
      return bad("connect_timeout and command_timeout go from 1ms to 24h");
    }
  }
  return done{};
}

}  // namespace holdfast::store::zookeeper
