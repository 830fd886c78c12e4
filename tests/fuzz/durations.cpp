#include <array>

#include "base/option.hpp"
#include "fuzz/input.hpp"

// Durations as people write them, and misspelt words for which a known word is suggested.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::base;
  const auto text = fuzz::text_of(data, size);
  const auto read = parse_duration(text);
  fuzz::require(!read || read->count() >= 0);
  static constexpr std::array<std::string_view, 3> known{"lease", "timeout", "linger"};
  (void)nearest(text.substr(0, 100), known);
  return 0;
}
