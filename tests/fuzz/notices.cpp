#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "store/redis/keys.hpp"
#include "store/redis/notification_text.hpp"
#include "store/sql/notification_text.hpp"

// A line that another process has sent: decoded, encoded and decoded again, it is
// the same notification.
namespace {

using holdfast::store::notification;

void read_line(std::string_view line) {
  using namespace holdfast::store::sql;
  const auto read = decode(line);
  if (!read) return;
  const std::string again = encode(*read);
  fuzz::require(again.ends_with('\n') && decode(again.substr(0, again.size() - 1)) == read);
}

/// As the scripts of Redis write it.
std::string written(const std::vector<notification>& all) {
  const notification& first = all.front();
  const bool passed = static_cast<bool>(first.secret);
  std::string text(passed ? "passed" : to_string(first.what));
  for (const auto& one : all) {
    text += (&one == &first ? ' ' : '+') + to_string(one.owner);
  }
  text += ' ' + std::to_string(first.fence) + ' ' + std::to_string(first.expires_at) + ' ';
  if (passed) text += to_string(first.secret) + ' ';
  return text.append(holdfast::store::redis::name_keys("p", first.name)[0]);
}

// Of one channel, to one owner or several.
void read_message(std::string_view text) {
  const auto all = holdfast::store::redis::parse_notifications(text);
  if (all.empty()) return;
  for (const auto& one : all) {
    auto as_the_first = all.front();
    as_the_first.owner = one.owner;
    fuzz::require(one == as_the_first);
  }
  // A key may have a brace that ours would have as three characters; and a long one is not read.
  if (all.front().name.size() > 1'000) return;
  fuzz::require(holdfast::store::redis::parse_notifications(written(all)) == all);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_line(fuzz::text_of(data, size));
  read_message(fuzz::text_of(data, size));
  return 0;
}
