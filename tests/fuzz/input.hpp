#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Each file of this folder is a program that libFuzzer feeds with bytes; without libFuzzer it
/// reads its corpus (replay.cpp). It must neither crash nor hang, nor make a sanitizer complain.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Removes the text up to `mark`, and the mark, and returns the text.
inline std::string_view take_until(std::string_view& rest, char mark) {
  const auto at = rest.find(mark);
  const auto head = rest.substr(0, at);
  rest.remove_prefix(at == rest.npos ? rest.size() : at + 1);
  return head;
}

/// A condition that must hold for every input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fuzz
