#include "store/zookeeper/options.hpp"

#include "base/names.hpp"

namespace holdfast::store::zookeeper {

namespace {

using namespace std::chrono_literals;
using own = zookeeper_options;

status set_session(zookeeper_options& to, std::string_view name, const std::string& value) {
  return base::read_time(to.session, name, value, {.least = 100ms});
}

status set_acl(zookeeper_options& to, std::string_view, const std::string& value) {
  to.private_acl = value == "creator";
  if (to.private_acl || value == "open") return done{};
  return base::invalid("acl='" + base::shortened(value, 80) + "' is none of open and creator");
}

constexpr base::option<zookeeper_options> known_options[]{
    {"session", set_session},
    base::time_option<own, &own::connect_timeout>("connect_timeout"),
    base::time_option<own, &own::command_timeout>("command_timeout"),
    base::password_option<own, &own::password>("password_env"),
    base::password_option<own, &own::password>("password_file"),
    {"acl", set_acl}};

bool is_node(const std::string& path) {
  return path.find("//") == path.npos && path.find("/./") == path.npos &&
         path.find("/../") == path.npos && !base::has_control_characters(path);
}

status check(const zookeeper_options& o) {
  if (!is_node(o.base + "/")) {
    return base::invalid(
        "the text after the hosts is not the path of a node: a path has no empty part, . or ..");
  }
  if (o.base == "/zookeeper" || o.base.starts_with("/zookeeper/")) {
    return base::invalid("/zookeeper belongs to the server: choose another base path");
  }
  if (o.user.empty() != o.password.empty()) {
    return base::invalid(
        "a user and a password come together: zookeeper://user:password@h1,h2/locks, or "
        "?password_env= or ?password_file=");
  }
  if (!o.private_acl || !o.user.empty()) return done{};
  return base::invalid("acl=creator needs a user: zookeeper://user:password@h1,h2/locks");
}

}  // namespace

result<zookeeper_options> read_options(const base::store_url& u) {
  if (auto ok = base::needs_servers(u, "zookeeper://h1,h2,h3/locks"); !ok) {
    return std::move(ok.error());
  }
  auto hosts = u.servers(2181);
  if (!hosts) return std::move(hosts.error());
  zookeeper_options o;
  std::string shown;
  for (const auto& h : *hosts) {
    // The client takes everything before the last colon for the host, including brackets.
    o.hosts += (o.hosts.empty() ? "" : ",") + h.host + ":" + std::to_string(h.port);
    shown += (shown.empty() ? "" : ",") + to_string(h);
  }
  o.user = u.user;
  o.password = u.password;
  o.private_acl = !o.user.empty();
  o.base = u.path;
  while (o.base.ends_with('/')) o.base.pop_back();
  o.url = u.shown_user() + shown + o.base;
  if (auto ok = base::read_options<zookeeper_options>(u, known_options, o); !ok) {
    return std::move(ok.error());
  }
  if (auto ok = check(o); !ok) return std::move(ok.error());
  return o;
}

}  // namespace holdfast::store::zookeeper
