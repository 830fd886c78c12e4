#include "store/memcached/options.hpp"

#include <algorithm>

namespace holdfast::store::memcached {

namespace {

using own = memcached_options;

failure refused(std::string what) { return base::invalid("memcached: " + std::move(what)); }

status set_prefix(memcached_options& to, std::string_view, const std::string& value) {
  const auto plain = [](char c) { return c > ' ' && c < 0x7F && c != '%' && c != ':'; };
  const bool fits = !value.empty() && value.size() <= 32;
  if (fits && std::all_of(value.begin(), value.end(), plain)) return to.prefix = value, done{};
  return refused("a prefix has 1 to 32 printable bytes of ASCII, without spaces, colons and %");
}

constexpr base::option<memcached_options> known_options[]{
    {"prefix", set_prefix},
    base::time_option<own, &own::connect_timeout>("connect_timeout"),
    base::time_option<own, &own::command_timeout>("command_timeout")};

}  // namespace

result<memcached_options> read_options(const base::store_url& u) {
  if (auto ok = base::needs_servers(u, "memcached://h1,h2:11211"); !ok) {
    return std::move(ok.error());
  }
  if (!u.user.empty() || !u.password.empty() || u.empty_password) {
    return refused("has no users here; keep the server on a private network");
  }
  if (!u.inner_path().empty()) {
    return refused("has no databases; tell locks apart by ?prefix=");
  }
  auto servers = u.servers(11211);
  if (!servers) return refused(servers.error().what + "; write memcached://h1,h2:11211");
  memcached_options o;
  o.servers = std::move(*servers);
  // The order in the URL does not matter.
  std::sort(o.servers.begin(), o.servers.end());
  if (std::adjacent_find(o.servers.begin(), o.servers.end()) != o.servers.end()) {
    return refused("names the same server twice");
  }
  for (const auto& s : o.servers) o.url += (o.url.empty() ? "memcached://" : ",") + to_string(s);
  if (auto ok = base::read_options<memcached_options>(u, known_options, o); !ok) {
    return std::move(ok.error());
  }
  if (o.prefix != memcached_options().prefix) o.url += base::shown_options({{"prefix", o.prefix}});
  return o;
}

}  // namespace holdfast::store::memcached
