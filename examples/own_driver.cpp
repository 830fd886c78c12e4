// A driver for a store of your own, and a program that opens it (docs/drivers.md).

// #region driver
#include <holdfast/session.hpp>
#include <holdfast/store/driver.hpp>

using namespace holdfast;

result<std::unique_ptr<store::session_store>> open_mine(const store::opening& how) {
  return failure{errc::unavailable,
                 "no connection to " + without_secrets(how.url)};  // or your store
}

const store::driver* holdfast_store_driver_1() noexcept {
  static constexpr store::driver mine{"mine", open_mine};
  return &mine;
}
// #endregion

#include <holdfast/holdfast.hpp>
#include <iostream>

int main() {
  const auto opened = holdfast_store_driver_1()->open({"mine://host", real_clock(), nullptr});
  std::cout << (opened ? "it answers\n" : opened.error().what + '\n');
}
