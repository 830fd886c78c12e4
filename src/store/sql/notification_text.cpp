#include "store/sql/notification_text.hpp"

#include "base/words.hpp"

namespace holdfast::store::sql {

using base::take_number;
using base::take_word;

namespace {

constexpr std::string_view version = "hf1";
// Writes of up to PIPE_BUF (4096) bytes are never mixed with each other.
constexpr std::size_t longest_name = 3'000;

bool can_be_sent(std::string_view name) noexcept {
  return !name.empty() && name.size() <= longest_name &&
         name.find_first_of(std::string_view{"\n\0", 2}) == std::string_view::npos;
}

// A grant with a secret has a word of its own.
constexpr std::string_view passed = "passed";

bool take_kind(std::string_view word, notification_kind& into) noexcept {
  if (word != passed)
    return parse_notification_kind(word, into) && into != notification_kind::departed;
  into = notification_kind::granted;
  return true;
}

bool take_secret(std::string_view& rest, owner_id& into) noexcept {
  return parse_owner_id(take_word(rest), into) && into;
}

}  // namespace

std::string encode(const notification& n) {
  if (n.what == notification_kind::departed || !can_be_sent(n.name)) return {};
  std::string line;
  line.reserve(140 + n.name.size());
  const bool with_secret = n.what == notification_kind::granted && n.secret;
  line.append(version).append(" ").append(with_secret ? passed : to_string(n.what)).append(" ");
  line.append(to_string(n.owner)).append(" ").append(std::to_string(n.fence)).append(" ");
  line.append(std::to_string(n.expires_at)).append(" ");
  if (with_secret) line.append(to_string(n.secret)).append(" ");
  return line.append(n.name).append("\n");
}

std::optional<notification> decode(std::string_view line) {
  notification n;
  if (take_word(line) != version) return std::nullopt;
  const auto what = take_word(line);
  const bool whole = take_kind(what, n.what) && parse_owner_id(take_word(line), n.owner) &&
                     take_number(line, n.fence) && take_number(line, n.expires_at) &&
                     (what != passed || take_secret(line, n.secret)) && can_be_sent(line);
  if (!whole) return std::nullopt;
  n.name = line;
  return n;
}

}  // namespace holdfast::store::sql
