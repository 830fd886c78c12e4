#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "bench/subject.hpp"

namespace bench {
namespace {

/// A file descriptor of its own, so that threads of a process exclude each other, too.
class flock_grip final : public handle {
 public:
  explicit flock_grip(const std::filesystem::path& file)
      : fd_{open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
    if (fd_ < 0) throw std::system_error{errno, std::generic_category(), file.string()};
  }
  ~flock_grip() override { close(fd_); }
  void lock() override { apply(LOCK_EX); }
  void unlock() override { apply(LOCK_UN); }

 private:
  void apply(int operation) const {
    while (flock(fd_, operation) != 0) {
      if (errno != EINTR) throw std::system_error{errno, std::generic_category(), "flock"};
    }
  }
  int fd_;
};

class flock_locks final : public subject {
 public:
  explicit flock_locks(std::filesystem::path folder) : folder_{std::move(folder)} {}
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<flock_grip>(folder_ / ("flock-" + std::to_string(lock)));
  }

 private:
  std::filesystem::path folder_;
};

std::unique_ptr<subject> open_flock(const place& at) {
  return std::make_unique<flock_locks>(at.folder);
}

}  // namespace

const subject_kind flock_baseline{
    .name = "flock",
    .counts_operations = false,
    .fits = on_one_host,
    .across_processes = always,
    .prepare = nothing,
    .open = open_flock,
};

}  // namespace bench
