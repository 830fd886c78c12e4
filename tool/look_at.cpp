#include "tool/look_at.hpp"

#include <algorithm>

#include "tool/text.hpp"

namespace holdfast::tool {

listed_name look_at(const session& s, const std::string& name) {
  listed_name found;
  try {
    found.info = s.show(name);
  } catch (const error& e) {
    if (e.retryable()) throw;
    found.error = unsigned_message(e.what());
  }
  found.info.name = name;
  return found;
}

std::vector<listed_name> look_at_all(const session& s, std::string_view pattern) {
  auto names = s.names(pattern);
  std::sort(names.begin(), names.end());
  std::vector<listed_name> found;
  for (const auto& name : names) {
    auto one = look_at(s, name);
    const bool gone = one.error.empty() && one.info.kind.empty();  // since the names were read
    if (!gone) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace holdfast::tool
