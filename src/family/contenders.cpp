#include "family/contenders.hpp"

#include <algorithm>

namespace holdfast::family {

namespace {

// A contender that uses the name as something else becomes a holder when it is the first. So no
// contender behind it may be a holder by then.
std::uint32_t weight_for(const store::contender& me, const store::contender& ahead,
                         std::uint32_t capacity) {
  const bool ours = me.owner && (ahead.owner || is_record(ahead));
  const bool alike = ahead.kind == me.kind && ahead.capacity == me.capacity;
  return ours && !alike ? capacity : ahead.weight;
}

}  // namespace

decision decide(std::span<const store::contender> all, std::size_t me, std::uint32_t capacity) {
  decision d;
  std::uint64_t sum = 0;
  const auto weight = [&](std::size_t i) { return weight_for(all[me], all[i], capacity); };
  for (std::size_t i = 0; i <= me; ++i) {
    sum += weight(i);
    if (sum > capacity) ++d.position;
  }
  d.mine = sum <= capacity;
  if (d.mine) return d;
  // The weight that may vanish without its turn coming.
  std::uint64_t spare = sum - capacity - 1;
  for (std::size_t i = 0; i < me; ++i) {
    if (weight(i) <= spare) {
      spare -= weight(i);
    } else {
      d.watch.push_back(i);
    }
  }
  return d;
}

bool alone(std::span<const store::contender> all, std::size_t first, std::size_t raised) {
  if (first != 0) return false;  // all contenders ahead of a holder hold the lock as well
  return std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(raised),
                     [&](const auto& c) { return c.owner && c.owner == all[0].owner; });
}

bool is_record(const store::contender& c) { return !c.owner && c.kind == store::kind::latch; }

void fit(line& all, std::uint32_t capacity) {
  for (auto& c : all) c.weight = std::min(c.weight, capacity);
}

std::size_t index_of(const line& all, const std::string& node) {
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& c) { return c.node == node; });
  return static_cast<std::size_t>(at - all.begin());
}

std::vector<std::string> nodes_of(const line& all, const store::owner_id& owner) {
  std::vector<std::string> found;
  for (const auto& c : all) {
    if (c.owner == owner) found.push_back(c.node);
  }
  return found;
}

const store::contender* first_of_ours(const line& all) {
  const auto at =
      std::find_if(all.begin(), all.end(), [](const auto& c) { return c.owner || is_record(c); });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace holdfast::family
