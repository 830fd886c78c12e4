#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace holdfast::base {

namespace sha256_parts {

using words = std::array<std::uint32_t, 8>;

// FIPS 180-4: the initial hash value, and a constant for each round.
inline constexpr words beginning{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
inline constexpr std::array<std::uint32_t, 64> of_round{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

inline constexpr std::size_t block_bytes = 64;

inline std::uint32_t mixed(std::uint32_t x, int a, int b, int c) noexcept {
  return std::rotr(x, a) ^ std::rotr(x, b) ^ std::rotr(x, c);
}

// A byte of the padded message: the bytes, the bit that ends them, zeros, and their length in bits.
inline std::uint32_t padded(std::string_view bytes, std::size_t at, std::size_t whole) noexcept {
  if (at < bytes.size()) return static_cast<unsigned char>(bytes[at]);
  if (at == bytes.size()) return 0x80;
  const std::size_t from_the_end = whole - 1 - at;
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  return from_the_end < 8 ? static_cast<unsigned char>(bits >> 8 * from_the_end) : 0;
}

inline std::array<std::uint32_t, 64> schedule_of(std::string_view bytes, std::size_t from,
                                                 std::size_t whole) noexcept {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < block_bytes; ++i) {
    w[i / 4] = w[i / 4] << 8 | padded(bytes, from + i, whole);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const std::uint32_t b = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  return w;
}

}  // namespace sha256_parts

/// SHA-256 of the bytes (FIPS 180-4), as eight numbers whose most significant byte comes first.
inline std::array<std::uint32_t, 8> sha256(std::string_view bytes) noexcept {
  using namespace sha256_parts;
  constexpr std::size_t behind = 1 + 8;  // the bit that ends them, and the length
  const std::size_t whole = (bytes.size() + behind + block_bytes - 1) / block_bytes * block_bytes;
  words sum = beginning;
  for (std::size_t from = 0; from < whole; from += block_bytes) {
    const auto w = schedule_of(bytes, from, whole);
    auto [a, b, c, d, e, f, g, h] = sum;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t one = h + mixed(e, 6, 11, 25) + ((e & f) ^ (~e & g)) + of_round[i] + w[i];
      const std::uint32_t two = mixed(a, 2, 13, 22) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one;
      d = c, c = b, b = a, a = one + two;
    }
    const words block{a, b, c, d, e, f, g, h};
    std::transform(sum.begin(), sum.end(), block.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

}  // namespace holdfast::base
