#include "family/record_codec.hpp"

#include "fuzz/input.hpp"

// A record in a store that others may write to: decoded, encoded and decoded
// again, it is the same record.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::family;
  const auto read = decode(fuzz::text_of(data, size));
  if (!read) return 0;
  std::string once, twice;
  std::visit([&](const auto& r) { encode(r, once); }, *read);
  const auto again = decode(once);
  fuzz::require(again && *again == *read);
  std::visit([&](const auto& r) { encode(r, twice); }, *again);
  fuzz::require(once == twice);
  return 0;
}
