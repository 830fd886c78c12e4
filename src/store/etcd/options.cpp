#include "store/etcd/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "store/files/files.hpp"

namespace holdfast::store::etcd {

namespace {

using namespace std::chrono_literals;

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

bool is_port(std::string_view text) {
  std::uint16_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc{} && end == text.data() + text.size() && number != 0;
}

status add_host(etcd_options& o, std::string_view one) {
  const auto colon = one.starts_with('[') ? one.find(':', one.find(']')) : one.rfind(':');
  const auto host = one.substr(0, colon);
  const auto port = colon == one.npos ? "2379" : one.substr(colon + 1);
  if (host.empty()) return bad("names no host; write etcd://h1,h2,h3/locks");
  if (host.find(':') != host.npos && !host.starts_with('[')) {
    return bad("an IPv6 address is written in brackets: [::1]:2379");
  }
  if (!is_port(port)) {
    return bad("what is behind the colon is not a port; ports go from 1 to 65535");
  }
  o.hosts.push_back(std::string(host) + ":" + std::string(port));
  return done{};
}

status take_hosts(etcd_options& o, std::string_view all) {
  while (true) {
    const auto comma = std::min(all.find(','), all.size());
    if (auto ok = add_host(o, all.substr(0, comma)); !ok) return ok;
    if (comma == all.size()) return done{};
    all.remove_prefix(comma + 1);
  }
}

status take_base(etcd_options& o, std::string_view base) {
  while (base.ends_with('/')) base.remove_suffix(1);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  if (std::any_of(base.begin(), base.end(), control)) {
    return bad("the prefix has control characters");
  }
  o.base = base;
  return done{};
}

void take_credentials(etcd_options& o, std::string_view& rest) {
  const auto at = rest.rfind('@');  // a password may hold a /
  if (at == rest.npos) return;
  const auto credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const auto colon = std::min(credentials.find(':'), credentials.size());
  o.user = credentials.substr(0, colon);
  if (colon < credentials.size()) o.password = credentials.substr(colon + 1);
}

std::string shown(const etcd_options& o) {
  std::string all;
  for (const auto& host : o.hosts) all += (all.empty() ? "" : ",") + host;
  return (o.tls ? "etcds://" : "etcd://") + (o.user.empty() ? "" : o.user + "@") + all + o.base;
}

status password_from_environment(etcd_options& o, const std::string& name) {
  const char* const found = std::getenv(name.c_str());
  if (found == nullptr || *found == '\0') {
    return bad("the password is to be in the environment as " + name + ", and is not");
  }
  o.password = found;
  return done{};
}

status password_from_file(etcd_options& o, const std::string& path) {
  auto line = files::first_line(path);
  if (!line) return bad("cannot read the password from " + path + ": " + line.error().what);
  if (line->empty()) return bad("no password can be read from the file " + path);
  return o.password = std::move(*line), done{};
}

status check_tls(const etcd_options& o) {
  const bool any = !(o.ca + o.cert + o.key + o.server_name).empty();
  if (any && !o.tls) return bad("ca, cert, key and server_name are for TLS: write etcds://");
  if (o.cert.empty() != o.key.empty()) return bad("cert and key come together");
  const std::pair<std::string_view, const std::string&> read[]{
      {"ca", o.ca}, {"cert", o.cert}, {"key", o.key}};
  for (const auto& [option, path] : read) {
    if (auto ok = files::check_no_fifo(option, path); !ok) return ok;
    if (!path.empty() && !std::ifstream(path)) return bad("the file " + path + " can not be read");
  }
  return done{};
}

}  // namespace

result<etcd_options> parse_address(std::string_view scheme, std::string_view rest) {
  if (!rest.starts_with("//")) return bad("etcd: needs servers: etcd://h1,h2,h3/locks");
  rest.remove_prefix(2);
  etcd_options o;
  o.tls = scheme == "etcds";
  take_credentials(o, rest);
  const auto slash = std::min(rest.find('/'), rest.size());
  if (auto ok = take_base(o, rest.substr(slash)); !ok) return std::move(ok.error());
  if (auto ok = take_hosts(o, rest.substr(0, slash)); !ok) return std::move(ok.error());
  o.url = shown(o);
  return o;
}

status set_option(etcd_options& o, std::string_view name, const std::string& value) {
  if (name == "password_env") return password_from_environment(o, value);
  if (name == "password_file") return password_from_file(o, value);
  auto* const text = name == "ca"            ? &o.ca
                     : name == "cert"        ? &o.cert
                     : name == "key"         ? &o.key
                     : name == "server_name" ? &o.server_name
                                             : nullptr;
  if (text == nullptr) return bad("there is no option '" + std::string(name) + "'");
  if (value.empty()) return bad(std::string(name) + "= is empty");
  *text = value;
  return done{};
}

std::chrono::milliseconds* duration_of(etcd_options& o, std::string_view name) {
  return name == "session"           ? &o.session
         : name == "connect_timeout" ? &o.connect_timeout
         : name == "command_timeout" ? &o.command_timeout
                                     : nullptr;
}

status check_options(const etcd_options& o) {
  if (o.user.empty() != o.password.empty()) {
    return bad(
        "a user and a password come together: etcd://user:password@h1,h2/locks, or "
        "?password_env= or ?password_file=");
  }
  if (o.session < 1s || o.session > 24h) {
    return bad("session=" + std::to_string(o.session.count()) +
               " ms: from 1s (etcd counts in seconds, and may raise it) to 24h");
  }
  for (const auto timeout : {o.connect_timeout, o.command_timeout}) {
    if (timeout < 1ms || timeout > 24h) {
      return bad("connect_timeout and command_timeout go from 1ms to 24h");
    }
  }
  return check_tls(o);
}

}  // namespace holdfast::store::etcd
