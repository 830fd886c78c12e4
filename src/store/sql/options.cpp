#include "store/sql/options.hpp"

#include <algorithm>

namespace holdfast::store::sql {

using namespace std::chrono_literals;

base::keepalive keepalive_of(const link_options& o) noexcept {
  const auto seconds = [](std::chrono::milliseconds d) {
    return std::max(1s, std::chrono::floor<std::chrono::seconds>(d));
  };
  const auto sure = sure_for(o);
  return {.idle = seconds(sure / 2), .interval = seconds(sure / 6), .unacknowledged = sure};
}

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
