#include "store/memcached/keys.hpp"

#include <charconv>

#include "base/percent.hpp"

namespace holdfast::store::memcached {

namespace {

/// The number of bytes reserved for a suffix.
constexpr std::size_t suffix_bytes = 12;

bool stays(char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7F && c != '%'; }

void append_escaped(std::string& to, std::string_view name) {
  for (const char c : name) {
    if (stays(c)) {
      to += c;
    } else {
      base::append_percent(to, c);
    }
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// FNV-1a with a final mix, because the comparison depends mostly on the top bits.
std::uint64_t weight_of(std::string_view name, const address& server) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  };
  add(to_string(server));
  add(std::string_view("\0", 1));
  add(name);
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53U;
  return hash ^ (hash >> 33);
}

}  // namespace

result<std::string> lock_key(std::string_view prefix, std::string_view name, std::uint32_t part) {
  std::string key(prefix);
  key += ':';
  append_escaped(key, name);
  if (key.size() + suffix_bytes > max_key_bytes) {
    return failure{
        errc::invalid_name,
        "the name takes " + std::to_string(key.size()) +
            " bytes as a key, and memcached allows 250, of which holdfast adds 12: choose a "
            "shorter one, or one with fewer spaces and % (which take three bytes each)"};
  }
  if (part > 0) key += "%s" + std::to_string(part);
  return key;
}

std::string counter_key(const std::string& lock_of_part_0) { return lock_of_part_0 + "%n"; }

std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    plain += escaped ? static_cast<char>(byte) : text[i];
    if (escaped) i += 2;
  }
  return plain;
}

std::optional<std::string> name_of_key(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix) || key.substr(prefix.size(), 1) != ":") return std::nullopt;
  key.remove_prefix(prefix.size() + 1);
  if (key.ends_with("%n")) return std::nullopt;
  const auto suffix = key.rfind("%s");
  if (suffix != key.npos && !is_number(key.substr(suffix + 2))) return std::nullopt;
  const auto without_part = key.substr(0, suffix);
  auto name = unescape(without_part);
  std::string same;
  append_escaped(same, name);
  if (same != without_part) return std::nullopt;
  return name;
}

std::size_t server_of(std::string_view name, const std::vector<address>& servers) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < servers.size(); ++i) {
    if (weight_of(name, servers[i]) > weight_of(name, servers[best])) best = i;
  }
  return best;
}

}  // namespace holdfast::store::memcached
