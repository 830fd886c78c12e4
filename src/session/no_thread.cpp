#include "session/no_thread.hpp"

#include <exception>
#include <string>

namespace holdfast::engine {

failure no_thread(std::string_view purpose) noexcept try {
  throw;
} catch (const std::exception& e) {
  try {
    return {errc::unavailable, "no thread " + std::string(purpose) + ": " + e.what() +
                                   "; raise the limit of threads (ulimit -u, pids cgroup)"};
  } catch (...) {
    return {errc::unavailable, "no memory"};  // short enough to need none
  }
} catch (...) {
  return {errc::unavailable, "no memory"};
}

}  // namespace holdfast::engine
