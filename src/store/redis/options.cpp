#include "store/redis/options.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace holdfast::store::redis {

namespace {

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, number);
  return wrong == std::errc{} && after == end;
}

// A path may hold an @ itself: what comes before it is a user only if it does not look like a path.
void take_credentials(std::string_view& rest, redis_options& o) {
  const auto at = rest.rfind('@');
  if (at == rest.npos || rest.starts_with('/')) return;
  const auto credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const auto colon = std::min(credentials.find(':'), credentials.size());
  o.user = credentials.substr(0, colon);
  if (colon < credentials.size()) o.password = credentials.substr(colon + 1);
}

status take_database(std::string_view& rest, redis_options& o) {
  const auto slash = rest.find('/');
  if (slash == rest.npos) return done{};
  const auto text = rest.substr(slash + 1);
  rest = rest.substr(0, slash);
  if (text.empty() || (parse_number(text, o.database) && o.database <= 1'000'000)) return done{};
  return bad("'" + std::string(text) + "' is not the number of a database; write redis://host:6379/0");
}

status take_host(std::string_view rest, redis_options& o) {
  std::string_view port;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == rest.npos) return bad("an IPv6 address needs its closing ]");
    o.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
    if (!port.empty() && port.front() != ':') return bad("after ] comes :port or nothing");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const auto colon = rest.rfind(':');
    if (colon != rest.npos) port = rest.substr(colon + 1);
    o.host = rest.substr(0, colon);
    if (o.host.find(':') != o.host.npos) return bad("an IPv6 address is written in brackets: [::1]:6379");
  }
  if (o.host.empty()) return bad("names no host; write for example redis://localhost:6379");
  if (port.empty()) return done{};
  if (parse_number(port, o.port) && o.port != 0) return done{};
  return bad("'" + std::string(port) + "' is not a port; ports go from 1 to 65535");
}

result<std::string> read_first_line(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return bad("cannot read the password from " + path + ": " + std::strerror(errno));
  char text[4096];
  const auto size = ::read(fd, text, sizeof text);
  ::close(fd);
  if (size < 0) return bad("cannot read the password from " + path + ": " + std::strerror(errno));
  const std::string_view all(text, static_cast<std::size_t>(size));
  return std::string(all.substr(0, all.find_first_of("\r\n")));
}

status set_timeout(std::chrono::milliseconds& to, std::string_view name, std::string_view text) {
  const bool bare_ms = text.ends_with("ms");
  const auto digits = text.substr(0, text.size() - (bare_ms ? 2 : text.ends_with('s') ? 1 : 0));
  double number = 0;
  if (!parse_number(digits, number) || !(number > 0) || number > 86'400'000) {
    return bad("'" + std::string(text) + "' is no " + std::string(name) + "; write 500ms or 2s");
  }
  to = std::chrono::milliseconds(static_cast<std::int64_t>(number * (bare_ms ? 1 : 1000)));
  if (to.count() >= 1) return done{};
  return bad(std::string(name) + " must be a millisecond at least");
}

std::string describe(const redis_options& o, std::string_view scheme) {
  std::string text(scheme);
  text += "://";
  if (!o.user.empty()) text += o.user + "@";
  if (!o.unix_path.empty()) return text + o.unix_path;
  text += o.host.find(':') == o.host.npos ? o.host : "[" + o.host + "]";
  return text + ":" + std::to_string(o.port) + "/" + std::to_string(o.database);
}

}  // namespace

result<redis_options> parse_address(std::string_view scheme, std::string_view rest) {
  redis_options o;
  o.tls = scheme == "rediss";
  if (!rest.starts_with("//")) {
    return bad(std::string(scheme) + ": needs an address; write " + std::string(scheme) + "://host:6379");
  }
  rest.remove_prefix(2);
  take_credentials(rest, o);
  if (scheme == "redis+unix") {
    if (!rest.starts_with('/')) return bad("redis+unix: needs an absolute path: redis+unix:///run/redis.sock");
    o.unix_path = rest;
  } else {
    if (auto ok = take_database(rest, o); !ok) return std::move(ok.error());
    if (auto ok = take_host(rest, o); !ok) return std::move(ok.error());
  }
  o.url = describe(o, scheme);
  return o;
}

status set_option(redis_options& o, std::string_view name, const std::string& value) {
  if (name == "connect_timeout") return set_timeout(o.connect_timeout, name, value);
  if (name == "command_timeout") return set_timeout(o.command_timeout, name, value);
  if (name == "ca") return o.ca = value, done{};
  if (name == "cert") return o.cert = value, done{};
  if (name == "key") return o.key = value, done{};
  if (name == "server_name") return o.server_name = value, done{};
  if (name == "database" || name == "db") {
    if (parse_number(value, o.database) && o.database <= 1'000'000) return done{};
    return bad("'" + value + "' is not the number of a database");
  }
  if (name == "prefix") {
    if (value.empty() || value.size() > 64 || value.find_first_of("{} *?[]\\") != value.npos) {
      return bad("a prefix has 1 to 64 bytes, without spaces, braces and wildcards");
    }
    return o.prefix = value, done{};
  }
  if (name == "password_env") {
    const char* const found = std::getenv(value.c_str());
    if (found == nullptr) return bad("the password is to be in the environment as " + value + ", which is not set");
    return o.password = found, done{};
  }
  if (name == "password_file") {
    auto found = read_first_line(value);
    if (!found) return std::move(found.error());
    return o.password = std::move(*found), done{};
  }
  return bad("there is no option '" + std::string(name) + "'");
}

}  // namespace holdfast::store::redis
