#include "store/zookeeper/zookeeper.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

const store::driver& zookeeper() noexcept {
  using namespace store::zookeeper;
  static constexpr store::driver all{"zookeeper", open_over_family<read_options, open_zookeeper>};
  return all;
}

}  // namespace holdfast::drivers
