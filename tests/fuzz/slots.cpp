#include "fuzz/input.hpp"
#include "store/redis/resp.hpp"
#include "store/redis/slot_map.hpp"

// Answers of Redis cluster nodes that describe the cluster.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::store::redis;
  const auto bytes = fuzz::text_of(data, size);
  const address asked{"asked", 7000};
  (void)slot_of(bytes);
  (void)says_later(bytes);
  const auto elsewhere = read_redirection(bytes, asked);
  fuzz::require(!elsewhere || elsewhere->slot < slot_count);
  resp_reader reader({.line_bytes = 1'000, .bulk_bytes = 10'000, .items = 1'000, .depth = 8});
  reader.put(bytes);
  resp_value v;
  while (reader.next(v) == resp_reader::progress::ready) {
    auto map = slot_map::read(v, asked);
    if (map && elsewhere) map->move(elsewhere->slot, elsewhere->to);
    if (map) (void)map->primaries(), (void)map->owner(slot_of(bytes));
    v = {};
  }
  return 0;
}
