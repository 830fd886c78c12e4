#include "store/etcd/names.hpp"

#include <cstdio>
#include <limits>

#include "store/places/text.hpp"

namespace holdfast::store::etcd {

namespace {

bool is_lease(std::string_view place) {
  return !place.empty() && place.find_first_not_of("0123456789abcdef") == place.npos;
}

}  // namespace

std::string escape(std::string_view name) {
  std::string part;
  for (const char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '/' || c == '%') {
      places::append_escaped(part, {&c, 1});
    } else {
      part += c;
    }
  }
  return part;
}

std::string end_of(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

std::string place_for(std::int64_t lease, const contender& who) {
  char hex[24];
  std::snprintf(hex, sizeof hex, "%llx.", static_cast<unsigned long long>(lease));
  return hex + places::to_text(who);
}

std::optional<contender> contender_at(std::string_view place) {
  const auto dot = place.find('.');
  if (dot != place.npos) {
    if (auto ours = places::parse_contender(place.substr(dot + 1))) {
      ours->place = place;
      return ours;
    }
  }
  contender other;
  other.place = place;
  if (place == record_key) {
    other.kind = kind::latch;
  } else if (is_lease(place)) {
    other.weight = std::numeric_limits<std::uint32_t>::max();
  } else {
    return std::nullopt;
  }
  return other;
}

std::string value_of(const placard& says) {
  return std::to_string(says.since_wall_at) + ' ' + places::write(says);
}

placard placard_of(std::string_view value, std::int64_t create_revision) {
  auto rest = value;
  std::int64_t since = 0;
  placard p = places::take_number(rest, ' ', since) ? places::read_placard(rest) : placard{};
  if (rest.size() == value.size()) p.note = value;
  p.since_wall_at = since;
  p.fence = static_cast<std::uint64_t>(create_revision);
  return p;
}

}  // namespace holdfast::store::etcd
