#include <algorithm>
#include <holdfast/session.hpp>
#include <iterator>

#include "base/store_url.hpp"

namespace holdfast {

namespace {

using text = std::string_view;

/// The value of an option is shown only if the option is in this list: a store knows it, and it is
/// no secret. Hiding a value needlessly does less harm than showing a secret.
constexpr text shown_options[]{
    // of several stores
    "connect_timeout", "command_timeout", "password_env", "password_file", "prefix", "session",
    "ca", "cert", "key", "server_name", "connections", "mode",
    // SQLite
    "synchronous", "busy_timeout", "network", "group", "access",
    // Redis
    "database", "dialect", "setnx_unit", "ack", "ack_timeout", "replicas", "sentinel_user",
    "sentinel_password_env", "sentinel_password_file",
    // ZooKeeper, MariaDB
    "acl", "tls", "socket", "defaults_file", "ssl_ca", "ssl_cert", "ssl_key",
    // PostgreSQL and libpq
    "schema", "listen", "host", "hostaddr", "port", "dbname", "user", "passfile", "service",
    "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslsni", "gssencmode",
    "channel_binding", "krbsrvname", "target_session_attrs", "application_name"};

/// Stores whose users may have no password, so that a word before the @ is no secret.
constexpr text lone_users[]{"postgres", "mariadb", "mysql"};

/// Schemes followed by a path, which may contain any character; behind // there would be a host,
/// which these do not have.
constexpr text paths[]{"sqlite", "memory", "file", "redis+unix"};

bool is_among(const auto& all, text word) {
  return std::find(std::begin(all), std::end(all), word) != std::end(all);
}

/// The last @ (or %40, which may have been meant as one); npos if there is none.
std::size_t last_at(text in) {
  const auto plain = in.rfind('@');
  const auto escaped = in.rfind("%40");
  if (plain == text::npos || escaped == text::npos) return std::min(plain, escaped);
  return std::max(plain, escaped);
}

/// The position behind the colon, where the password begins; npos if there is no colon.
std::size_t after_colon(text in) {
  const auto plain = in.find(':');
  const auto escaped = std::min(in.find("%3A"), in.find("%3a"));
  if (escaped < plain) return escaped + 3;
  return plain == text::npos ? plain : plain + 1;
}

bool is_port(text word) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return word.size() <= 5 && std::all_of(word.begin(), word.end(), digit);
}

class finder {
 public:
  explicit finder(text all) : all_(all) {}

  std::vector<text> go() {
    const auto colon = all_.find(':');
    const bool scheme = colon != text::npos && colon != 0 && base::is_scheme(all_.substr(0, colon));
    if (!scheme) {
      in_something(colon);
      return std::move(found_);
    }
    const std::string name = base::lower(all_.substr(0, colon));
    const auto rest = all_.substr(colon + 1);
    const auto place = rest.substr(0, rest.find('?'));
    options_ = rest.substr(std::min(place.size() + 1, rest.size()));
    if (is_path(name, place)) {
      // a path contains no secret
    } else if (options_.find('@') != text::npos) {
      in_refused(rest, place);
    } else {
      in_place(name, place);
    }
    in_options();
    return std::move(found_);
  }

 private:
  void add(text secret) {
    if (!secret.empty()) found_.push_back(secret);
  }

  // The text is no URL, but may be one whose scheme was forgotten.
  void in_something(std::size_t colon) {
    const auto at = last_at(all_);
    if (at == text::npos) return;
    const auto from = colon < at ? colon + 1 : 0;
    add(all_.substr(from, at - from));
  }

  static bool is_path(const std::string& scheme, text place) {
    const bool absolute = place.starts_with("///") || !place.starts_with("//");
    return absolute && is_among(paths, scheme);
  }

  // An @ behind the ? belongs to a password that contains a ?, or to an option. The text between
  // the ? and the @, and the text behind them, may belong to the password.
  void in_refused(text rest, text place) {
    options_ = {};
    const std::size_t slashes = place.starts_with("//") ? 2 : 0;
    const auto password = after_colon(place.substr(slashes));
    add(rest.substr(slashes + (password == text::npos ? 0 : password)));
  }

  void in_place(const std::string& scheme, text place) {
    const bool slashes = place.starts_with("//");
    if (slashes) place.remove_prefix(2);
    const auto at = last_at(place);
    if (at == text::npos) return in_hosts(place);
    const auto who = place.substr(0, at);
    const auto password = slashes ? after_colon(who) : 0;
    if (password != text::npos) return add(who.substr(password));
    if (!is_among(lone_users, scheme) && !names_password()) add(who);
  }

  // In `user:password` without @ and host, the password would be taken for a port, and characters
  // in it for the rest of the URL.
  void in_hosts(text place) {
    for (text left = place; !left.empty();) {
      const auto one = left.substr(0, left.find_first_of(",/"));
      const auto bracket = one.starts_with('[') ? std::min(one.find(']'), one.size()) : 0;
      const auto port = after_colon(one.substr(bracket));
      if (port != text::npos && !is_port(one.substr(bracket + port)))
        return add(left.substr(bracket + port));
      if (one.size() == left.size() || left[one.size()] == '/') return;
      left.remove_prefix(one.size() + 1);
    }
  }

  bool names_password() const {
    return options_.starts_with("password_") || options_.find("&password_") != text::npos;
  }

  void in_options() {
    for (text left = options_; !left.empty();) {
      const auto pair = left.substr(0, left.find('&'));
      const auto equals = pair.find('=');
      const bool named = equals != text::npos && equals != 0;
      if (!named) return add(left);
      // A secret may contain an &: all that follows may belong to it.
      const auto name = pair.substr(0, equals);
      if (!may_be_shown(name, pair.substr(equals + 1))) return add(left.substr(equals + 1));
      left.remove_prefix(std::min(pair.size() + 1, left.size()));
    }
  }

  static bool may_be_shown(text name, text value) {
    if (!is_among(shown_options, name)) return false;
    const auto plain = base::unescape(value);
    if (!plain || plain->find("password=") != plain->npos) return false;
    const bool word = name != "listen" || *plain == "auto" || *plain == "never";
    if (!word && !plain->starts_with("postgres:")) return false;
    return plain->find(':') == plain->npos || finder(*plain).go().empty();
  }

  const text all_;
  text options_;
  std::vector<text> found_;
};

}  // namespace

std::vector<std::string_view> secrets_in(std::string_view url) { return finder(url).go(); }

std::string without_secrets(std::string_view url) {
  std::string shown;
  std::size_t at = 0;
  for (const auto secret : secrets_in(url)) {
    const auto begin = static_cast<std::size_t>(secret.data() - url.data());
    shown.append(url, at, begin - at).append("***");
    at = begin + secret.size();
  }
  return shown.append(url, at);
}

}  // namespace holdfast
