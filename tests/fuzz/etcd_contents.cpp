#include "fuzz/input.hpp"
#include "store/etcd/names.hpp"

// Keys and values that other programs wrote below our prefix in etcd: `key` on the first line.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::store;
  auto value = fuzz::text_of(data, size);
  const auto key = fuzz::take_until(value, '\n');
  const auto who = etcd::contender_at(key);
  (void)etcd::escape(key);
  (void)etcd::end_of(std::string(key));
  const auto says = etcd::contender_data_of(value, 7);
  const auto again = etcd::contender_data_of(etcd::value_of(says), 7);
  fuzz::require(again.peer == says.peer && again.note == says.note);
  if (who && who->owner) (void)etcd::place_for(1, *who);
  return 0;
}
