#include "store/etcd/options.hpp"

#include <fstream>

#include "base/names.hpp"

namespace holdfast::store::etcd {

namespace {

using namespace std::chrono_literals;
using own = etcd_options;

// etcd counts in seconds, and may raise it.
status set_session(etcd_options& to, std::string_view name, const std::string& value) {
  return base::read_time(to.session, name, value, {.least = 1s});
}

constexpr base::option<etcd_options> known_options[]{
    {"session", set_session},
    base::time_option<own, &own::connect_timeout>("connect_timeout"),
    base::time_option<own, &own::command_timeout>("command_timeout"),
    base::password_option<own, &own::password>("password_env"),
    base::password_option<own, &own::password>("password_file"),
    base::path_option<own, &own::ca>("ca"),
    base::path_option<own, &own::cert>("cert"),
    base::path_option<own, &own::key>("key"),
    base::text_option<own, &own::server_name>("server_name")};

status check_tls(const etcd_options& o) {
  const bool any = !(o.ca + o.cert + o.key + o.server_name).empty();
  if (any && !o.tls) {
    return base::invalid("ca, cert, key and server_name are for TLS: write etcds://");
  }
  if (o.cert.empty() != o.key.empty()) return base::invalid("cert and key come together");
  for (const auto& path : {o.ca, o.cert, o.key}) {
    // gRPC takes an empty text for none: with an empty `ca`, it trusts the machine's authorities.
    if (path.empty() || std::ifstream(path).get() != std::ifstream::traits_type::eof()) continue;
    return base::invalid("the file " + path + " is empty, or cannot be read");
  }
  return done{};
}

status check(const etcd_options& o) {
  if (base::has_control_characters(o.base)) {
    return base::invalid("the prefix has control characters");
  }
  if (o.user.empty() == o.password.empty()) return check_tls(o);
  return base::invalid(
      "a user and a password come together: etcd://user:password@h1,h2/locks, or "
      "?password_env= or ?password_file=");
}

}  // namespace

result<etcd_options> read_options(const base::store_url& u) {
  if (auto ok = base::needs_servers(u, "etcd://h1,h2,h3/locks"); !ok) return std::move(ok.error());
  auto hosts = u.servers(2379);
  if (!hosts) return std::move(hosts.error());
  etcd_options o;
  std::string shown;
  for (const auto& h : *hosts) {
    o.hosts.push_back(to_string(h));
    shown += (shown.empty() ? "" : ",") + o.hosts.back();
  }
  o.tls = u.scheme == "etcds";
  o.user = u.user;
  o.password = u.password;
  o.base = u.path;
  while (o.base.ends_with('/')) o.base.pop_back();
  o.url = u.shown_user() + shown + o.base;
  if (auto ok = base::read_options<etcd_options>(u, known_options, o); !ok) {
    return std::move(ok.error());
  }
  if (auto ok = check(o); !ok) return std::move(ok.error());
  return o;
}

}  // namespace holdfast::store::etcd
