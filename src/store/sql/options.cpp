#include "store/sql/options.hpp"

namespace holdfast::store::sql {

using namespace std::chrono_literals;

status set_connections(link_options& o, const std::string& text) {
  return base::read_number(o.connections, "connections", text, 1, 100);
}

status set_mode(link_options& o, const std::string& text) {
  o.session_mode = text == "session";
  if (o.session_mode || text == "lease") return done{};
  return base::invalid("mode is lease (rows with a lease) or session (the server's own locks)");
}

status set_silence(link_options& o, const std::string& text) {
  return base::read_time(o.silence, "session", text, {.least = 3s});
}

}  // namespace holdfast::store::sql
