#include "session/sealed_id.hpp"

#include <array>
#include <string_view>

#include "base/sha256.hpp"

namespace holdfast::engine {

namespace {

std::uint64_t joined(std::uint32_t high, std::uint32_t low) noexcept {
  return std::uint64_t{high} << 32 | low;
}

}  // namespace

store::owner_id sealed(const store::owner_id& secret) noexcept {
  std::array<char, 16> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(secret.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<char>(secret.low >> (56 - 8 * i));
  }
  const auto hash = base::sha256(std::string_view(bytes.data(), bytes.size()));
  return {joined(hash[0], hash[1]), joined(hash[2], hash[3])};
}

}  // namespace holdfast::engine
