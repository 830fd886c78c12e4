#include "tool/progress.hpp"

#include <unistd.h>

#include <array>

#include "tool/duration.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

ourselves who_we_are() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return {host.data(), ::getpid()};
}

std::string holder_phrase(const participant& p, std::chrono::system_clock::time_point now) {
  std::string who = p.host.empty() ? "another program" : printable(p.host);
  if (p.pid != 0) who += " pid " + std::to_string(p.pid);
  return is_known(p.since) ? who + " for " + format_duration(now - p.since) : who;
}

std::string held_by(const name_info& info, std::chrono::system_clock::time_point now) {
  if (info.holders.empty()) return {};
  std::string line = " · held by " + holder_phrase(info.holders.front(), now);
  if (info.holders.size() > 1) line += " and " + std::to_string(info.holders.size() - 1) + " more";
  return line;
}

std::string waiting_line(const name_info& info, const ourselves& us,
                         std::chrono::system_clock::time_point now) {
  std::string line = "waiting for " + printable(info.name) + held_by(info, now);
  std::size_t place = 0;
  for (const participant& p : info.waiters) {
    if (p.died) continue;  // passed over
    ++place;
    if (p.host == us.host && p.pid == static_cast<std::uint32_t>(us.pid))
      return line + " · you are " + ordinal(place);
  }
  return line;
}

}  // namespace holdfast::tool
