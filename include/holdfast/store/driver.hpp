#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/store.hpp>
#include <memory>
#include <string_view>

namespace holdfast {
class observer;
}

/// The interface between open(url) and the driver of a store, and the function that a loadable
/// driver exports. docs/drivers.md says where drivers are searched for, and which of them are
/// refused.
namespace holdfast::store {

/// One call of open(). The references last as long as the call; the clock outlives the store.
struct opening {
  std::string_view url;  ///< as the caller wrote it, with its secrets
  holdfast::clock& clock;
  std::shared_ptr<holdfast::observer> observer;  ///< for warnings about the server; may be null
};

/// It must exist until the process ends; its library is never unloaded.
struct driver {
  /// `redis`: part of the file's name, and of the package's.
  std::string_view name;
  /// Connects, or fails as the store's page says. A failure's `store` is what url() would return,
  /// as far as the URL could be read. Thread-safe. Must throw nothing except what starting a thread
  /// throws.
  result<std::unique_ptr<session_store>> (*open)(const opening& how);
};

/// The function that a driver's file defines, below. From the first release on the number grows
/// with each change of this header, or of one that it includes: a driver for another number lacks
/// the function, and is refused.
inline constexpr char driver_function[] = "holdfast_store_driver_1";

}  // namespace holdfast::store

/// Not in the library, but in each driver's file: returns that file's driver.
extern "C" [[gnu::visibility("default")]] const holdfast::store::driver*
holdfast_store_driver_1() noexcept;
