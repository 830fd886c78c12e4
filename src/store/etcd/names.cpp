#include "store/etcd/names.hpp"

#include <cstdio>
#include <limits>

#include "base/words.hpp"
#include "store/contender_text/text.hpp"

namespace holdfast::store::etcd {

namespace {

bool is_lease(std::string_view node) {
  return !node.empty() && node.find_first_not_of("0123456789abcdef") == node.npos;
}

}  // namespace

std::string escape(std::string_view name) {
  std::string part;
  for (const char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '/' || c == '%') {
      contender_text::append_escaped(part, {&c, 1});
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
  return hex + contender_text::to_text(who);
}

std::optional<contender> contender_at(std::string_view node) {
  const auto dot = node.find('.');
  if (dot != node.npos) {
    if (auto ours = contender_text::parse_contender(node.substr(dot + 1))) {
      ours->node = node;
      return ours;
    }
  }
  contender other;
  other.node = node;
  if (node == record_key) {
    other.kind = kind::latch;
  } else if (is_lease(node)) {
    other.weight = std::numeric_limits<std::uint32_t>::max();
  } else {
    return std::nullopt;
  }
  return other;
}

std::string value_of(const contender_data& says) {
  return std::to_string(says.since_wall_at) + ' ' + contender_text::write(says);
}

contender_data contender_data_of(std::string_view value, std::int64_t create_revision) {
  auto rest = value;
  std::int64_t since = 0;
  contender_data p;
  if (base::take_number(rest, since) && contender_text::is_ours(rest)) {
    p = contender_text::read_contender_data(rest);
    p.since_wall_at = since;
  } else {
    p.note = value;
  }
  p.fence = static_cast<std::uint64_t>(create_revision);
  return p;
}

}  // namespace holdfast::store::etcd
