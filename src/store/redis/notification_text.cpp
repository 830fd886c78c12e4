#include "store/redis/notification_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "store/redis/keys.hpp"

namespace holdfast::store::redis {

namespace {

std::string_view next_word(std::string_view& text, char between = ' ') {
  const auto space = std::min(text.find(between), text.size());
  const auto word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

constexpr std::size_t longest_key = 4'096;
constexpr std::size_t longest_owners = 33 * 10'000;  // a barrier's, of one session

template <class Number>
bool read_number(std::string_view word, Number& number) {
  const auto [after, wrong] = std::from_chars(word.data(), word.data() + word.size(), number);
  return wrong == std::errc{} && after == word.data() + word.size();
}

}  // namespace

std::vector<notification> parse_notifications(std::string_view text) {
  notification n;
  const auto what = next_word(text);
  const bool passed = what == "passed";  // granted, with a secret
  auto owners = next_word(text);
  if ((!passed && !parse_notification_kind(what, n.what)) ||
      n.what == notification_kind::departed || !read_number(next_word(text), n.fence) ||
      !read_number(next_word(text), n.expires_at) ||
      (passed && !parse_owner_id(next_word(text), n.secret))) {
    return {};
  }
  // Each owner has a copy of the name, and anybody may publish.
  if (text.size() > longest_key || owners.size() > longest_owners) return {};
  n.name = name_of_key(text);
  std::vector<notification> all;
  do {
    if (!parse_owner_id(next_word(owners, '+'), n.owner)) return {};
    all.push_back(n);
  } while (!owners.empty());
  return all;
}

}  // namespace holdfast::store::redis
