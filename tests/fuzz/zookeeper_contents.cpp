#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "store/contender_text/text.hpp"
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
    (void)contender_text::unescape(child);
    (void)contender_text::parse_contender(child);
  }
  const auto says = contender_text::read_contender_data(rest);
  const auto again = contender_text::read_contender_data(contender_text::write(says));
  fuzz::require(again.peer == says.peer && again.note == says.note);
  return 0;
}
