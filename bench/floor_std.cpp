#include <array>
#include <mutex>

#include "bench/subject.hpp"

namespace bench {
namespace {

class std_grip final : public handle {
 public:
  explicit std_grip(std::mutex& m) : mutex_{m} {}
  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }

 private:
  std::mutex& mutex_;
};

struct alignas(64) padded_mutex {
  std::mutex mutex;
};

/// What a lock between threads costs that nobody else can see.
class std_locks final : public subject {
 public:
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<std_grip>(mutexes_[lock].mutex);
  }

 private:
  std::array<padded_mutex, max_locks> mutexes_;
};

bool everywhere(std::string_view) { return true; }
bool never(const place&) { return false; }
std::unique_ptr<subject> open_std(const place&) { return std::make_unique<std_locks>(); }

}  // namespace

const subject_kind std_floor{
    .name = "std",
    .counts_operations = false,
    .fits = everywhere,
    .across_processes = never,
    .prepare = nothing,
    .open = open_std,
};

}  // namespace bench
