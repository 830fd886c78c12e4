#include "base/store_url.hpp"

#include <algorithm>
#include <charconv>
#include <holdfast/session.hpp>
#include <numeric>

#include "base/names.hpp"
#include "base/percent.hpp"
#include "base/words.hpp"

namespace holdfast::base {

namespace {

constexpr std::size_t longest_shown = 300;

failure malformed(std::string why) { return {errc::invalid_argument, std::move(why)}; }

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

bool is_option_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

status parse_options(std::string_view text, store_url& u) {
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const auto pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = pair.find('=');
    if (equals == pair.npos || equals == 0) {
      return malformed("has an option that is not of the form name=value");
    }
    // Any other text may be the rest of a password, so it is not repeated.
    if (!is_option_name(pair.substr(0, equals))) {
      return malformed("has an option whose name is not made of small letters and _");
    }
    auto value = unescape(pair.substr(equals + 1));
    if (!value) return std::move(value.error());
    u.options.emplace_back(std::string(pair.substr(0, equals)), std::move(*value));
  }
  return done{};
}

bool looks_like_a_path(std::string_view text) {
  return text.starts_with('/') || text.starts_with("./") || text.ends_with(".db") ||
         text.ends_with(".sqlite");
}

/// The advice for a text that names no store.
std::string what_to_write(std::string_view text) {
  if (looks_like_a_path(text)) return "for a file write sqlite: before its path";
  const auto slashes = text.find("//");
  if (slashes == text.npos || slashes == 0 || !is_scheme(text.substr(0, slashes))) {
    return "write for example sqlite:locks.db";
  }
  return "a colon is missing; did you mean " + lower(text.substr(0, slashes)) + "://…?";
}

/// Stores whose place is a path, and never a server.
constexpr std::string_view paths[]{"sqlite", "memory", "file"};

status take(std::string& to, std::string_view text) {
  auto plain = unescape(text);
  if (!plain) return std::move(plain.error());
  return to = std::move(*plain), done{};
}

status take_credentials(std::string_view text, store_url& u) {
  const auto colon = std::min(text.find(':'), text.size());
  if (auto ok = take(u.user, text.substr(0, colon)); !ok) return ok;
  if (colon == text.size() && u.user.find(':') != u.user.npos) {
    return malformed(
        "has a user name with an escaped : and no password: write the : between user and password "
        "unescaped, and escape only one inside either of them");
  }
  if (colon == text.size()) return done{};
  u.empty_password = colon + 1 == text.size();
  return take(u.password, text.substr(colon + 1));
}

// `user:password@hosts/path`. The last @ ends the password, so a password may contain others.
status take_servers(std::string_view text, store_url& u) {
  u.has_servers = true;
  const auto at = is_path(u.scheme, text) ? text.npos : text.rfind('@');
  if (at != text.npos) {
    if (auto ok = take_credentials(text.substr(0, at), u); !ok) return ok;
    text.remove_prefix(at + 1);
  }
  const auto slash = std::min(text.find('/'), text.size());
  u.hosts = text.substr(0, slash);
  return take(u.path, text.substr(slash));
}

result<std::uint16_t> read_port(std::string_view text, std::uint16_t usual) {
  if (text.empty()) return usual;
  std::uint16_t port = 0;
  if (parse_number(text, port) && port != 0) return port;
  return malformed("the text after the colon is not a port; ports go from 1 to 65535");
}

// name, name:port, [v6], [v6]:port
result<address> read_address(std::string_view text, std::uint16_t usual_port) {
  const bool v6 = text.starts_with('[');
  const auto end = v6 ? text.find(']') : std::min(text.rfind(':'), text.size());
  if (end == text.npos) return malformed("an IPv6 address needs its closing ]");
  auto name = unescape(text.substr(v6 ? 1 : 0, end - (v6 ? 1 : 0)));
  if (!name) return std::move(name.error());
  if (name->empty()) {
    return malformed("has no host where one belongs; write its name there, such as localhost");
  }
  const bool path = name->front() == '/';  // of a socket
  if (name->find_first_of(path ? "@," : "@,/") != name->npos) {
    return malformed(
        "has an @, a comma or a / inside the name of a host: between user, host and path write "
        "these signs unescaped");
  }
  if (!v6 && name->find(':') != name->npos) {
    return malformed("an IPv6 address is written in brackets: [::1]");
  }
  auto rest = text.substr(std::min(end + (v6 ? 1 : 0), text.size()));
  if (!rest.empty() && rest.front() != ':') return malformed("after ] comes :port or nothing");
  auto port = read_port(rest.substr(rest.empty() ? 0 : 1), usual_port);
  if (!port) return std::move(port.error());
  return address{std::move(*name), *port};
}

// The message of a failure states the error only, without the URL.
result<store_url> take_apart(std::string_view text) {
  // A trailing blank, as from a line of a crontab, would become a part of the file or the host.
  if (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) {
    return malformed("ends with a blank: leave it out, or write %20 if it belongs to a name");
  }
  const auto colon = text.find(':');
  if (colon == text.npos || colon == 0 || !is_scheme(text.substr(0, colon))) {
    return malformed("names no store; " + what_to_write(text));
  }
  store_url u;
  u.scheme = lower(text.substr(0, colon));
  text.remove_prefix(colon + 1);
  const auto question = std::min(text.find('?'), text.size());
  if (text.starts_with("//") && text.find('@', question) != text.npos) {
    return malformed("has an @ behind a ?; in a password write %3F for ?, in an option %40 for @");
  }
  const auto where = text.substr(0, question);
  const bool servers = where.starts_with("//") &&
                       std::find(std::begin(paths), std::end(paths), u.scheme) == std::end(paths);
  if (auto ok = servers ? take_servers(where.substr(2), u) : take(u.path, where); !ok) {
    return std::move(ok.error());
  }
  text.remove_prefix(std::min(question + 1, text.size()));
  if (auto ok = parse_options(text, u); !ok) return std::move(ok.error());
  return u;
}

// Escapes characters that would end the value, or change its meaning when the URL is read again.
std::string escape(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c > ' ' && c != 0x7F && std::string_view("%&?#@").find(c) == std::string_view::npos) {
      escaped += c;
    } else {
      append_percent(escaped, c);
    }
  }
  return escaped;
}

}  // namespace

std::string to_string(const address& a) {
  const bool v6 = a.host.find(':') != a.host.npos;
  return (v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

std::vector<std::string_view> between_commas(std::string_view list) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= list.size(); at += parts.back().size() + 1) {
    parts.push_back(list.substr(at, std::min(list.find(',', at), list.size()) - at));
  }
  return parts;
}

bool is_path(std::string_view scheme, std::string_view rest) noexcept {
  return scheme == "redis+unix" && rest.starts_with('/');
}

result<std::vector<address>> store_url::servers(std::uint16_t usual_port) const {
  std::vector<address> all;
  for (const auto host : between_commas(hosts)) {
    auto one = read_address(host, usual_port);
    if (!one) return std::move(one.error());
    all.push_back(std::move(*one));
  }
  return all;
}

std::string store_url::shown_user() const {
  return scheme + "://" + (user.empty() ? "" : user + "@");
}

std::string_view store_url::inner_path() const noexcept {
  std::string_view inner = path;
  if (inner.starts_with('/')) inner.remove_prefix(1);
  if (inner.ends_with('/')) inner.remove_suffix(1);
  return inner;
}

std::string shown_options(
    std::initializer_list<std::pair<std::string_view, std::string_view>> options) {
  std::string shown;
  for (const auto& [name, value] : options) {
    if (value.empty()) continue;
    shown.append(shown.empty() ? "?" : "&").append(name).append("=") += escape(value);
  }
  return shown;
}

std::string shown(const store_url& place,
                  std::initializer_list<std::pair<std::string_view, std::string_view>> options) {
  const std::string url = place.shown_user() + place.hosts + place.path + shown_options(options);
  return without_secrets(url);
}

status needs_servers(const store_url& u, std::string_view example) {
  if (u.has_servers) return done{};
  return malformed(u.scheme + ": needs an address; write " + std::string(example));
}

const std::string* store_url::option(std::string_view name) const noexcept {
  const auto found = std::find_if(options.rbegin(), options.rend(),
                                  [&](const auto& o) { return o.first == name; });
  return found == options.rend() ? nullptr : &found->second;
}

bool is_scheme(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

result<std::string> unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return malformed("has a % without two hexadecimal digits; write %25 for the sign itself");
    }
    plain += static_cast<char>(byte);
    i += 2;
  }
  if (plain.find('\0') != plain.npos) return malformed("contains a zero byte");
  return plain;
}

result<store_url> parse_url(std::string_view text) {
  auto u = take_apart(text);
  if (u) return u;
  return malformed("the URL '" + shortened(without_secrets(text), longest_shown) + "' " +
                   u.error().what);
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const auto candidate : candidates) {
    const auto changes = distance(word, candidate);
    if (changes < fewest) best = candidate, fewest = changes;
  }
  return best;
}

}  // namespace holdfast::base
