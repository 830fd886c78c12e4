#include "store/etcd/fixture.hpp"

#include <algorithm>
#include <atomic>
#include <random>

namespace etcd_test {

const harness::etcd_cluster& calm_cluster() {
  static const harness::etcd_cluster all;
  return all;
}

std::string fresh_base() {
  static std::atomic<int> number{0};
  return "/base-" + std::to_string(std::random_device()()) + "-" + std::to_string(++number);
}

std::string keys_below(const std::string& prefix) {
  return calm_cluster().ctl("get --prefix --keys-only '" + prefix + "/'");
}

long count_below(const std::string& prefix) {
  const auto all = keys_below(prefix);
  return std::count(all.begin(), all.end(), '\n') / 2;
}

}  // namespace etcd_test
