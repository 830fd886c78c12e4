#include <holdfast/store/driver.hpp>
#include <string>

// A driver as somebody else writes it: with the public headers, and nothing else of holdfast.
namespace {

holdfast::result<std::unique_ptr<holdfast::store::session_store>> open_mine(
    const holdfast::store::opening& how) {
  return holdfast::failure{holdfast::errc::unavailable,
                           "mine was asked for " + std::string(how.url)};
}

constexpr holdfast::store::driver mine{"mine", open_mine};

}  // namespace

const holdfast::store::driver* holdfast_store_driver_1() noexcept { return &mine; }
