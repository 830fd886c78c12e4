#include <array>
#include <mutex>

#include "bench/subject.hpp"

namespace bench {
namespace {

struct alignas(64) padded_mutex {
  std::mutex mutex;
};

/// The cost of a lock between threads of one process.
class std_locks final : public subject {
 public:
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<grip_of<std::mutex>>(mutexes_[lock].mutex);
  }

 private:
  std::array<padded_mutex, max_locks> mutexes_;
};

bool never(const place&) { return false; }
std::unique_ptr<subject> open_std(const place&) { return std::make_unique<std_locks>(); }

}  // namespace

const subject_kind std_baseline{
    .name = "std",
    .counts_operations = false,
    .fits = everywhere,
    .across_processes = never,
    .prepare = nothing,
    .open = open_std,
};

}  // namespace bench
