#include "store/etcd/etcd.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

const store::driver& etcd() noexcept {
  using namespace store::etcd;
  static constexpr store::driver all{"etcd", open_over_family<read_options, open_etcd>};
  return all;
}

}  // namespace holdfast::drivers
