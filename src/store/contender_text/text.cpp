#include "store/contender_text/text.hpp"

#include <algorithm>
#include <array>

#include "base/percent.hpp"
#include "base/words.hpp"

namespace holdfast::store::contender_text {

namespace {

constexpr std::string_view ours = "hf1.";

/// The leases of holdfast are far shorter. A longer one is not holdfast's; and the store adds its
/// time to it, which must not overflow.
constexpr std::int64_t longest_lease_us = std::int64_t{1} << 60;

constexpr std::array<std::pair<char, kind>, 5> letters{{{'m', kind::mutex},
                                                        {'s', kind::shared_mutex},
                                                        {'p', kind::semaphore},
                                                        {'l', kind::latch},
                                                        {'e', kind::election}}};

char letter_of(kind k) {
  return std::find_if(letters.begin(), letters.end(), [&](auto& l) { return l.second == k; })
      ->first;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

// A try creates its entry, reads the queue, and removes the entry if it is not its turn: three
// commands.
capabilities promises(std::chrono::milliseconds command_timeout) noexcept {
  return {.preferences = false,
          .expiring = false,
          .election = true,
          .try_takes_ms = 3 * static_cast<std::uint32_t>(command_timeout.count()),
          .refusal =
              "it keeps an entry for each holder and waiter, which ends with its session, "
              "and no record that all of them change"};
}

std::string to_text(const contender& who) {
  std::string text(ours);
  text += letter_of(who.kind);
  text += '.' + std::to_string(who.capacity) + '.' + std::to_string(who.weight) + '.';
  text += to_string(who.owner);
  if (who.raises) text += '+';
  return text;
}

std::optional<contender> parse_contender(std::string_view text) {
  contender c;
  if (!text.starts_with(ours)) return std::nullopt;
  text.remove_prefix(ours.size());
  if (text.size() < 2 || text[1] != '.') return std::nullopt;
  const auto letter = std::find_if(letters.begin(), letters.end(),
                                   [&](const auto& l) { return l.first == text[0]; });
  if (letter == letters.end()) return std::nullopt;
  c.kind = letter->second;
  text.remove_prefix(2);
  if (!base::take_number(text, c.capacity, '.')) return std::nullopt;
  if (!base::take_number(text, c.weight, '.')) return std::nullopt;
  if (text.ends_with('+')) {
    c.raises = true;
    text.remove_suffix(1);
  }
  if (!parse_owner_id(text, c.owner)) return std::nullopt;
  return c;
}

std::string write(const contender_data& says) {
  return std::string(ours) + ' ' + std::to_string(says.weight) + ' ' +
         std::to_string(says.lease_us) + ' ' + says.peer + '\n' + says.note;
}

bool is_ours(std::string_view data) noexcept {
  return data.starts_with(ours) && data.substr(ours.size()).starts_with(' ');
}

contender_data read_contender_data(std::string_view data) {
  contender_data p;
  std::string_view rest = data;
  const auto head = ours.size() + 1;
  const auto line_end = data.find('\n');
  if (is_ours(data) && line_end != data.npos) {
    rest = data.substr(head, line_end - head);
    if (base::take_number(rest, p.weight) && base::take_number(rest, p.lease_us) &&
        p.lease_us >= 0 && p.lease_us <= longest_lease_us) {
      p.peer = rest;
      p.note = data.substr(line_end + 1);
      return p;
    }
  }
  p = {};
  p.note = data;
  return p;
}

void append_escaped(std::string& to, std::string_view bytes) {
  for (const char c : bytes) base::append_percent(to, c);
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

}  // namespace holdfast::store::contender_text
