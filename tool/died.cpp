#include "tool/died.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace holdfast::tool {

namespace {

bool has_died(const participant& p) { return p.died; }

}  // namespace

name_info without_the_dead(name_info info) {
  for (const participant& p : info.holders)
    if (p.died) info.remaining += std::min<std::uint32_t>(p.weight, info.capacity - info.remaining);
  std::erase_if(info.holders, has_died);
  std::erase_if(info.waiters, has_died);
  return info;
}

std::string death_phrase(const name_info& info) {
  const auto& all = info.holders;
  const auto dead = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), has_died));
  if (dead == 0) return {};
  const std::string who =
      all.size() == 1 ? "the holder"
                      : std::to_string(dead) + " of " + std::to_string(all.size()) + " holders";
  return who + " died; the next program that asks gets it";
}

}  // namespace holdfast::tool
