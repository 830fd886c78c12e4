#include "store/zookeeper/names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace holdfast::store::zookeeper {

namespace {

constexpr std::string_view ours = "hf1.";
constexpr std::string_view exclusive_mark = "__lock__";
constexpr std::string_view reader_mark = "__rlock__";
constexpr std::string_view other_mark = "__place__";
constexpr std::size_t digits = 10;

constexpr std::array<std::pair<char, kind>, 4> letters{
    {{'m', kind::mutex}, {'s', kind::shared_mutex}, {'p', kind::semaphore}, {'l', kind::latch}}};

char letter_of(kind k) {
  return std::find_if(letters.begin(), letters.end(), [&](auto& l) { return l.second == k; })
      ->first;
}

bool needs_escape(unsigned char c) { return c < 0x20 || c == 0x7F || c == '/' || c == '%'; }

// U+0080 to U+009F, and what Java's strings hold as surrogates, private use or specials.
bool is_refused(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  const auto second = sequence.size() > 1 ? static_cast<unsigned char>(sequence[1]) : 0;
  return (first == 0xC2 && second < 0xA0) || first >= 0xEE;
}

void append_escaped(std::string& to, std::string_view bytes) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    to += {'%', hex[byte >> 4], hex[byte & 15]};
  }
}

/// A character: its first byte, and those that go on with it.
std::string_view first_character(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
  return text.substr(0, size);
}

template <class Number>
bool take_number(std::string_view& text, char ends, Number& number) {
  const auto end = std::min(text.find(ends), text.size());
  const auto [after, wrong] = std::from_chars(text.data(), text.data() + end, number);
  if (wrong != std::errc{} || after != text.data() + end) return false;
  text.remove_prefix(std::min(end + 1, text.size()));
  return true;
}

/// A node's name, taken apart.
struct parsed {
  contender who;
  std::int32_t number = 0;
};

std::string_view mark_of(const contender& c) {
  if (c.kind == kind::semaphore || c.kind == kind::latch) return other_mark;
  return c.weight == c.capacity ? exclusive_mark : reader_mark;
}

bool take_sequence(std::string_view& name, std::int32_t& number) {
  if (name.size() < digits) return false;
  auto from = name.size() - digits;
  if (from > 0 && name[from - 1] == '-') --from;
  auto text = name.substr(from);
  name.remove_suffix(text.size());
  return take_number(text, '\0', number);
}

bool take_mark(std::string_view& name, std::string_view mark) {
  if (!name.ends_with(mark)) return false;
  name.remove_suffix(mark.size());
  return true;
}

std::optional<contender> read_ours(std::string_view text) {
  contender c;
  text.remove_prefix(ours.size());
  if (text.size() < 2 || text[1] != '.') return std::nullopt;
  const auto letter = std::find_if(letters.begin(), letters.end(),
                                   [&](const auto& l) { return l.first == text[0]; });
  if (letter == letters.end()) return std::nullopt;
  c.kind = letter->second;
  text.remove_prefix(2);
  if (!take_number(text, '.', c.capacity) || !take_number(text, '.', c.weight)) return std::nullopt;
  if (text.ends_with('+')) {
    c.raises = true;
    text.remove_suffix(1);
  }
  if (!parse_owner_id(text, c.owner)) return std::nullopt;
  return c;
}

std::optional<parsed> parse(const std::string& node) {
  std::string_view rest = node;
  parsed p;
  if (!take_sequence(rest, p.number)) return std::nullopt;
  const bool reads = take_mark(rest, reader_mark);
  if (!reads && !take_mark(rest, exclusive_mark) && !take_mark(rest, other_mark)) {
    return std::nullopt;
  }
  auto mine = rest.starts_with(ours) ? read_ours(rest) : std::nullopt;
  if (mine) {
    p.who = std::move(*mine);
  } else {
    p.who.weight = reads ? 1 : std::numeric_limits<std::uint32_t>::max();
  }
  p.who.place = node;
  return p;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::string escape(std::string_view name) {
  std::string part;
  if (name == "zookeeper" || name == "." || name == "..") {
    append_escaped(part, name.substr(0, 1));
    if (name == "..") append_escaped(part, name.substr(1));
    return name == "zookeeper" ? part + std::string(name.substr(1)) : part;
  }
  while (!name.empty()) {
    const auto one = first_character(name);
    if (needs_escape(static_cast<unsigned char>(one[0])) || is_refused(one)) {
      append_escaped(part, one);
    } else {
      part += one;
    }
    name.remove_prefix(one.size());
  }
  return part;
}

std::string unescape(std::string_view part) {
  std::string name;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '%') {
      name += part[i];
      continue;
    }
    const int high = i + 2 < part.size() ? hex_value(part[i + 1]) : -1;
    const int low = high < 0 ? -1 : hex_value(part[i + 2]);
    if (low < 0) return {};
    name += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return name;
}

std::string node_prefix(const contender& who) {
  std::string node(ours);
  node += letter_of(who.kind);
  node += '.' + std::to_string(who.capacity) + '.' + std::to_string(who.weight) + '.';
  node += to_string(who.owner);
  if (who.raises) node += '+';
  node += mark_of(who);
  return node;
}

std::vector<contender> in_order(const std::vector<std::string>& children) {
  std::vector<contender> line;
  std::vector<parsed> found;
  for (const auto& node : children) {
    if (node == record_node) {
      line.emplace_back();
      line.back().place = node;
      line.back().kind = kind::latch;
    } else if (auto p = parse(node)) {
      found.push_back(std::move(*p));
    }
  }
  // The server counts on from 2^31 - 1 at -2^31: what lies less than half the circle ahead is
  // later.
  const auto origin = found.empty() ? 0U : static_cast<std::uint32_t>(found.front().number);
  const auto ahead = [&](const parsed& p) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(p.number) - origin);
  };
  std::sort(found.begin(), found.end(),
            [&](const parsed& a, const parsed& b) { return ahead(a) < ahead(b); });
  for (auto& p : found) line.push_back(std::move(p.who));
  return line;
}

std::string write(const placard& says) {
  return std::string(ours) + ' ' + std::to_string(says.weight) + ' ' +
         std::to_string(says.lease_us) + ' ' + says.peer + '\n' + says.note;
}

placard read_placard(std::string_view data) {
  placard p;
  std::string_view rest = data;
  const auto head = std::string(ours) + ' ';
  const auto line_end = data.find('\n');
  if (data.starts_with(head) && line_end != data.npos) {
    rest = data.substr(head.size(), line_end - head.size());
    if (take_number(rest, ' ', p.weight) && take_number(rest, ' ', p.lease_us)) {
      p.peer = rest;
      p.note = data.substr(line_end + 1);
      return p;
    }
  }
  p = {};
  p.note = data;
  return p;
}

}  // namespace holdfast::store::zookeeper
