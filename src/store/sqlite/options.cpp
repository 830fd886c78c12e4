#include "store/sqlite/options.hpp"

namespace holdfast::store::sqlite {

namespace {

using own = sqlite_options;

// The limit is checked when the file is opened.
status set_busy_timeout(sqlite_options& to, std::string_view name, const std::string& value) {
  auto time = base::parse_duration(value);
  if (!time) return base::invalid(std::string(name) + ": " + time.error().what);
  return to.busy_timeout = *time, done{};
}

// Unknown words are refused when the file is opened.
constexpr base::option<sqlite_options> known_options[]{
    {"synchronous",
     [](own& to, std::string_view, const std::string& value) -> status {
       return to.synchronous = value, done{};
     }},
    {"network",
     [](own& to, std::string_view, const std::string& value) -> status {
       return to.network = value, done{};
     }},
    base::text_option<own, &own::group>("group"),
    {"access",
     [](own& to, std::string_view, const std::string& value) -> status {
       return to.access = value, done{};
     }},
    {"busy_timeout", set_busy_timeout}};

}  // namespace

result<sqlite_options> read_options(const base::store_url& u) {
  sqlite_options o;
  o.path = u.path.starts_with("///") ? u.path.substr(2) : u.path;
  o.url = "sqlite:" + u.path;
  if (o.path.empty()) return base::invalid("sqlite: needs the path of a file: sqlite:locks.db");
  if (o.path.starts_with("//")) {
    return base::invalid("sqlite: has no host; write sqlite:PATH or sqlite:///PATH");
  }
  if (auto ok = base::read_options<sqlite_options>(u, known_options, o); !ok) {
    return std::move(ok.error());
  }
  return o;
}

}  // namespace holdfast::store::sqlite
