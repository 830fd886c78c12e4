#include "fuzz/input.hpp"
#include "store/redis/commands.hpp"
#include "store/redis/redisson.hpp"
#include "store/redis/redisson_rate.hpp"
#include "store/redis/resp.hpp"
#include "store/redis/slot_map.hpp"

// Answers of Redis to our scripts, passed to every function that reads answers.
namespace {

using namespace holdfast::store;

void read_as_everything(const redis::resp_value& v) {
  for (int verb = 0; verb <= static_cast<int>(permits_verb::notify); ++verb) {
    (void)redis::read_permits(v, static_cast<permits_verb>(verb), 1'000'000);
  }
  for (int verb = 0; verb <= static_cast<int>(countdown_verb::inspect); ++verb) {
    (void)redis::read_countdown(v, static_cast<countdown_verb>(verb));
  }
  named_command both[2];
  both[0].name = "a", both[1].name = "b";
  (void)redis::read_together(v, both);
  (void)redis::read_admission(v, both[0], 2);
  (void)redis::read_rate(v, 2);
  (void)redis::read_latch("latch", v);
  if (v.items.size() >= 3) (void)redis::read_semaphore(v.items);
  const bucket_choice one{"0", {}};
  rate_command take{.verb = rate_verb::take};
  take.buckets = std::span(&one, 1);
  (void)redis::read_limiter("limiter", take, v);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  redis::resp_reader reader(
      {.line_bytes = 1'000, .bulk_bytes = 10'000, .items = 1'000, .depth = 8});
  reader.put(fuzz::text_of(data, size));
  redis::resp_value v;
  while (reader.next(v) == redis::resp_reader::progress::ready) {
    read_as_everything(v);
    v = {};
  }
  return 0;
}
