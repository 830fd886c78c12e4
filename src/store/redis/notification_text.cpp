#include "store/redis/notification_text.hpp"

#include <cstddef>

#include "base/words.hpp"
#include "store/redis/keys.hpp"

namespace holdfast::store::redis {

namespace {

constexpr std::size_t longest_key = 4'096;
constexpr std::size_t longest_owners = 33 * 10'000;  // 10'000 owners of a session at a barrier

}  // namespace

std::vector<notification> parse_notifications(std::string_view text) {
  notification n;
  const auto what = base::take_word(text);
  const bool passed = what == "passed";  // a grant with a secret
  auto owners = base::take_word(text);
  if ((!passed && !parse_notification_kind(what, n.what)) ||
      n.what == notification_kind::departed || !base::take_number(text, n.fence) ||
      !base::take_number(text, n.expires_at) ||
      (passed && !parse_owner_id(base::take_word(text), n.secret))) {
    return {};
  }
  // Each owner has a copy of the name, and any program may publish.
  if (text.size() > longest_key || owners.size() > longest_owners) return {};
  n.name = name_of_key(text);
  std::vector<notification> all;
  do {
    if (!parse_owner_id(base::take_word(owners, '+'), n.owner)) return {};
    all.push_back(n);
  } while (!owners.empty());
  return all;
}

}  // namespace holdfast::store::redis
