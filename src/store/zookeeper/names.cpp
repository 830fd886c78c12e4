#include "store/zookeeper/names.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/words.hpp"
#include "store/contender_text/text.hpp"

namespace holdfast::store::zookeeper {

namespace {

constexpr std::string_view exclusive_mark = "__lock__";
constexpr std::string_view reader_mark = "__rlock__";
constexpr std::string_view other_mark = "__place__";
constexpr std::size_t digits = 10;

bool needs_escape(unsigned char c) { return c < 0x20 || c == 0x7F || c == '/' || c == '%'; }

// U+0080 to U+009F, and the characters that are surrogates, private use or specials in Java's
// strings.
bool is_refused(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  const auto second = sequence.size() > 1 ? static_cast<unsigned char>(sequence[1]) : 0;
  return (first == 0xC2 && second < 0xA0) || first >= 0xEE;
}

/// A character: its first byte, and the continuation bytes.
std::string_view first_character(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
  return text.substr(0, size);
}

/// The parsed name of a node.
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
  const auto text = name.substr(from);
  name.remove_suffix(text.size());
  return base::parse_number(text, number);
}

bool take_mark(std::string_view& name, std::string_view mark) {
  if (!name.ends_with(mark)) return false;
  name.remove_suffix(mark.size());
  return true;
}

std::optional<parsed> parse(const std::string& node) {
  std::string_view rest = node;
  parsed p;
  if (!take_sequence(rest, p.number)) return std::nullopt;
  const bool reads = take_mark(rest, reader_mark);
  if (!reads && !take_mark(rest, exclusive_mark) && !take_mark(rest, other_mark)) {
    return std::nullopt;
  }
  auto mine = contender_text::parse_contender(rest);
  if (mine) {
    p.who = std::move(*mine);
  } else {
    p.who.weight = reads ? 1 : std::numeric_limits<std::uint32_t>::max();
  }
  p.who.node = node;
  return p;
}

}  // namespace

std::string escape(std::string_view name) {
  std::string part;
  if (name == "zookeeper" || name == "." || name == "..") {
    contender_text::append_escaped(part, name.substr(0, 1));
    if (name == "..") contender_text::append_escaped(part, name.substr(1));
    return name == "zookeeper" ? part + std::string(name.substr(1)) : part;
  }
  while (!name.empty()) {
    const auto one = first_character(name);
    if (needs_escape(static_cast<unsigned char>(one[0])) || is_refused(one)) {
      contender_text::append_escaped(part, one);
    } else {
      part += one;
    }
    name.remove_prefix(one.size());
  }
  return part;
}

std::string node_prefix(const contender& who) {
  return contender_text::to_text(who) + std::string(mark_of(who));
}

bool counter_used_up(std::string_view node) {
  std::int32_t number = 0;
  if (!take_sequence(node, number)) return false;
  return number < 0 || number == std::numeric_limits<std::int32_t>::max();
}

std::vector<contender> in_order(const std::vector<std::string>& children) {
  std::vector<contender> line;
  std::vector<parsed> found;
  for (const auto& node : children) {
    if (node == record_node) {
      line.emplace_back();
      line.back().node = node;
      line.back().kind = kind::latch;
    } else if (auto p = parse(node)) {
      found.push_back(std::move(*p));
    }
  }
  // The server counts from 2^31 - 1 on at -2^31: a number less than half the circle ahead is later.
  const auto origin = found.empty() ? 0U : static_cast<std::uint32_t>(found.front().number);
  const auto ahead = [&](const parsed& p) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(p.number) - origin);
  };
  std::sort(found.begin(), found.end(),
            [&](const parsed& a, const parsed& b) { return ahead(a) < ahead(b); });
  for (auto& p : found) line.push_back(std::move(p.who));
  return line;
}

}  // namespace holdfast::store::zookeeper
