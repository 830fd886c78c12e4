#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "store/places/text.hpp"
#include "store/zookeeper/names.hpp"

// Nodes and data that other programs wrote below our base in ZooKeeper: `/` between the names of
// nodes, and the data behind a line's end.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::store;
  auto rest = fuzz::text_of(data, size);
  auto nodes = fuzz::take_until(rest, '\n');
  std::vector<std::string> children;
  while (!nodes.empty()) children.emplace_back(fuzz::take_until(nodes, '/'));
  const auto line = zookeeper::in_order(children);
  fuzz::require(line.size() <= children.size());
  for (const auto& who : line) (void)zookeeper::node_prefix(who);
  for (const auto& child : children) {
    (void)zookeeper::escape(child);
    (void)places::unescape(child);
    (void)places::parse_contender(child);
  }
  const auto says = places::read_placard(rest);
  const auto again = places::read_placard(places::write(says));
  fuzz::require(again.peer == says.peer && again.note == says.note);
  return 0;
}
