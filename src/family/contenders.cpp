#include "family/contenders.hpp"

namespace holdfast::family {

decision decide(std::span<const store::contender> line, std::size_t me, std::uint32_t capacity) {
  decision d;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i <= me; ++i) {
    sum += line[i].weight;
    if (sum > capacity) ++d.position;
  }
  d.mine = sum <= capacity;
  if (d.mine) return d;
  // So much may go and it is still not my turn.
  std::uint64_t spare = sum - capacity - 1;
  for (std::size_t i = 0; i < me; ++i) {
    if (line[i].weight <= spare) {
      spare -= line[i].weight;
    } else {
      d.watch.push_back(i);
    }
  }
  return d;
}

bool alone(std::span<const store::contender> line, std::size_t raised, std::uint32_t capacity) {
  for (std::size_t i = 0; i < raised; ++i) {
    if (line[i].owner != line[raised].owner && decide(line, i, capacity).mine) return false;
  }
  return true;
}

}  // namespace holdfast::family
