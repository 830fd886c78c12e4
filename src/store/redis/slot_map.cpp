#include "store/redis/slot_map.hpp"

#include <algorithm>

#include "base/words.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/keys.hpp"

namespace holdfast::store::redis {

namespace {

// CRC16 of the XMODEM protocol, as the cluster specification demands.
constexpr std::array<std::uint16_t, 256> crc_table() {
  std::array<std::uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}

std::uint16_t crc16(std::string_view bytes) noexcept {
  static constexpr auto table = crc_table();
  unsigned crc = 0;
  for (const char c : bytes) {
    crc = ((crc << 8) ^ table[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xFF]) & 0xFFFF;
  }
  return static_cast<std::uint16_t>(crc);
}

// Servers that do not know their own address return nothing, or a question mark.
address address_or(std::string_view host, std::int64_t port, const address& asked) {
  const bool known = !host.empty() && host != "?";
  return {known ? std::string(host) : asked.host, static_cast<std::uint16_t>(port)};
}

bool is_node(const resp_value& v) {
  return v.items.size() >= 2 && v.items[1].integer > 0 && v.items[1].integer <= 65535;
}

}  // namespace

slot_number slot_of(std::string_view name) noexcept { return crc16(hash_tag(name)) % slot_count; }

std::string_view what_is_hashed(std::string_view key) noexcept {
  const auto open = key.find('{');
  const auto close = open == key.npos ? key.npos : key.find('}', open);
  if (close != key.npos && close > open + 1) return key.substr(open + 1, close - open - 1);
  return key;
}

slot_number slot_of_key(std::string_view key) noexcept {
  return crc16(what_is_hashed(key)) % slot_count;
}

std::string late_mark(std::string_view prefix, std::string_view key, bool in_a_cluster) {
  constexpr std::string_view suffix = ":holdfast:after";
  if (!in_a_cluster || what_is_hashed(key) != key) return std::string(key).append(suffix);
  return std::string(prefix).append("{").append(key).append("}").append(suffix);
}

// Each range: first slot, last slot, its primary, its replicas.
result<slot_map> slot_map::read(const resp_value& answer, const address& asked) {
  slot_map map;
  if (answer.is_error()) return server_says(answer.text);
  for (const auto& range : answer.items) {
    const auto& in = range.items;
    if (in.size() < 3 || !is_node(in[2]) || in[0].integer < 0 ||
        in[1].integer >= std::int64_t{slot_count}) {
      return strange_answer("CLUSTER SLOTS");
    }
    const auto owner =
        map.number_of(address_or(in[2].items[0].text, in[2].items[1].integer, asked));
    for (auto slot = in[0].integer; slot <= in[1].integer; ++slot)
      map.owners_[static_cast<std::size_t>(slot)] = owner;
  }
  for (const auto& range : answer.items) {
    for (std::size_t i = 3; i < range.items.size() && is_node(range.items[i]); ++i) {
      const auto& replica = range.items[i].items;
      (void)map.number_of(address_or(replica[0].text, replica[1].integer, asked));
    }
  }
  return map;
}

const address* slot_map::owner(slot_number slot) const noexcept {
  const auto number = owners_[slot];
  return number == nobody ? nullptr : &nodes_[number];
}

void slot_map::move(slot_number slot, const address& to) { owners_[slot] = number_of(to); }

std::vector<address> slot_map::primaries() const {
  std::vector<address> all;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (std::find(owners_.begin(), owners_.end(), i) != owners_.end()) all.push_back(nodes_[i]);
  }
  return all;
}

std::uint16_t slot_map::number_of(const address& a) {
  const auto found = std::find(nodes_.begin(), nodes_.end(), a);
  if (found != nodes_.end()) return static_cast<std::uint16_t>(found - nodes_.begin());
  nodes_.push_back(a);
  return static_cast<std::uint16_t>(nodes_.size() - 1);
}

std::optional<redirection> read_redirection(std::string_view error, const address& asked) {
  redirection r;
  const auto word = base::take_word(error);
  if (word != "MOVED" && word != "ASK") return std::nullopt;
  r.only_this_time = word == "ASK";
  if (!base::take_number(error, r.slot) || r.slot >= slot_count) return std::nullopt;
  const auto to = base::take_word(error);
  const auto colon = to.rfind(':');
  std::uint16_t port = 0;
  if (colon == to.npos || !base::parse_number(to.substr(colon + 1), port) || port == 0)
    return std::nullopt;
  r.to = address_or(to.substr(0, colon), port, asked);
  return r;
}

bool says_later(std::string_view error) noexcept {
  return error.starts_with("TRYAGAIN") || error.starts_with("CLUSTERDOWN");
}

}  // namespace holdfast::store::redis
