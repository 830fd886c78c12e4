#include "session/no_thread.hpp"

#include <string>
#include <system_error>

namespace holdfast::engine {

failure no_thread(std::string_view purpose) noexcept try {
  try {
    throw;
  } catch (const std::system_error& e) {
    return {errc::unavailable, "no thread " + std::string(purpose) + ": " + e.what() +
                                   "; raise the limit of threads (ulimit -u, pids cgroup)"};
  }
} catch (...) {
  return without_memory(false);
}

}  // namespace holdfast::engine
