#include "store/redis/late_mark.hpp"

#include "store/redis/slot_map.hpp"

namespace holdfast::store::redis {

std::string late_mark(std::string_view prefix, std::string_view key, bool in_a_cluster) {
  constexpr std::string_view suffix = ":holdfast:after";
  if (!in_a_cluster || what_is_hashed(key) != key) return std::string(key).append(suffix);
  return std::string(prefix).append("{").append(key).append("}").append(suffix);
}

}  // namespace holdfast::store::redis
