#include "store/redis/resp.hpp"

#include <vector>

#include "fuzz/input.hpp"

// What a Redis server sends: the same replies come out however the network cuts it.
namespace {

using namespace holdfast::store::redis;

constexpr resp_limits small{.line_bytes = 1'000, .bulk_bytes = 10'000, .items = 1'000, .depth = 8};

std::vector<resp_value> read(std::string_view bytes, std::size_t at_once, bool& broken) {
  resp_reader reader(small);
  std::vector<resp_value> all;
  while (true) {
    resp_value one;
    const auto how = reader.next(one);
    if (how == resp_reader::progress::ready) all.push_back(std::move(one));
    if (how == resp_reader::progress::broken) return broken = true, all;
    if (how != resp_reader::progress::need_more) continue;
    if (bytes.empty()) return all;
    const auto some = bytes.substr(0, at_once);
    reader.put(some);
    bytes.remove_prefix(some.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = fuzz::text_of(data, size);
  bool broken = false, broken_in_pieces = false;
  const auto whole = read(bytes, size + 1, broken);
  const auto pieces = read(bytes, 1, broken_in_pieces);
  fuzz::require(whole == pieces && broken == broken_in_pieces);
  return 0;
}
