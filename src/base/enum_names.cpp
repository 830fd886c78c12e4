#include <array>
#include <holdfast/lease.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/redlock.hpp>
#include <holdfast/store/command.hpp>

#include "base/hex.hpp"

namespace holdfast {

namespace {

constexpr std::array<std::string_view, 4> lease_states{"held", "suspect", "lost", "released"};
constexpr std::array<std::string_view, 6> votes{"granted", "refused", "failed",
                                                "silent",  "skipped", "untrusted"};
constexpr std::array<std::string_view, 16> events{
    "acquired",     "released",       "gave_up",    "busy",
    "suspect",      "renewed",        "held_again", "lost",
    "renew_failed", "release_failed", "misuse",     "warning",
    "lock_order",   "deadlock",       "paused",     "notification_gap"};

static_assert(lease_states.size() == static_cast<std::size_t>(lease_state::released) + 1);
static_assert(votes.size() == static_cast<std::size_t>(vote::untrusted) + 1);
static_assert(events.size() == static_cast<std::size_t>(event_kind::notification_gap) + 1);

template <std::size_t count, class Enum>
std::string_view word_of(const std::array<std::string_view, count>& words, Enum e) noexcept {
  const auto i = static_cast<std::size_t>(e);
  return i < count ? words[i] : "unknown";
}

}  // namespace

std::string_view to_string(lease_state s) noexcept { return word_of(lease_states, s); }
std::string_view to_string(vote v) noexcept { return word_of(votes, v); }
std::string_view to_string(event_kind kind) noexcept { return word_of(events, kind); }

namespace store {

namespace {

constexpr std::array<std::string_view, 8> kind_names{"mutex",   "shared_mutex",      "semaphore",
                                                     "latch",   "rate_limiter",      "election",
                                                     "barrier", "condition_variable"};

constexpr std::array<std::string_view, 4> notification_names{"granted", "wanted", "opened",
                                                             "departed"};

template <class Word, std::size_t count>
bool parse(const std::array<std::string_view, count>& names, std::string_view text, Word& into) {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] != text) continue;
    into = static_cast<Word>(i);
    return true;
  }
  return false;
}

// A table, because every command parses owner ids.
constexpr auto hex_values = [] {
  std::array<int, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < 10; ++i) values['0' + i] = static_cast<int>(i);
  for (std::size_t i = 0; i < 6; ++i) values['a' + i] = static_cast<int>(10 + i);
  return values;
}();

bool parse_hex(std::string_view text, std::uint64_t& number) noexcept {
  number = 0;
  for (const char c : text) {
    const int digit = hex_values[static_cast<unsigned char>(c)];
    if (digit < 0) return false;
    number = (number << 4) | static_cast<unsigned>(digit);
  }
  return true;
}

}  // namespace

std::string to_string(const owner_id& id) {
  std::string text;
  text.reserve(32);
  base::append_hex(text, id.high);
  base::append_hex(text, id.low);
  return text;
}

bool parse_owner_id(std::string_view text, owner_id& id) noexcept {
  return text.size() == 32 && parse_hex(text.substr(0, 16), id.high) &&
         parse_hex(text.substr(16), id.low);
}

std::string_view to_string(kind k) noexcept { return word_of(kind_names, k); }

bool parse_kind(std::string_view text, kind& k) noexcept { return parse(kind_names, text, k); }

std::string_view to_string(notification_kind k) noexcept { return word_of(notification_names, k); }

bool parse_notification_kind(std::string_view text, notification_kind& k) noexcept {
  return parse(notification_names, text, k);
}

}  // namespace store
}  // namespace holdfast
