#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "bench/subject.hpp"

namespace bench {
namespace {

void must(int code, const char* call) {
  if (code != 0) throw std::system_error{code, std::generic_category(), call};
}

struct alignas(64) padded_mutex {
  pthread_mutex_t mutex;
};

constexpr std::size_t mapped_bytes = max_locks * sizeof(padded_mutex);

/// Mutexes in a file that every process maps.
class mapped_mutexes {
 public:
  explicit mapped_mutexes(const std::filesystem::path& folder) {
    const auto file = folder / "pthread-mutexes";
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, mapped_bytes) != 0) must(errno, "pthread-mutexes");
    void* at = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) must(errno, "mmap");
    all_ = static_cast<padded_mutex*>(at);
  }
  ~mapped_mutexes() { munmap(all_, mapped_bytes); }
  mapped_mutexes(const mapped_mutexes&) = delete;
  mapped_mutexes& operator=(const mapped_mutexes&) = delete;

  pthread_mutex_t& operator[](unsigned i) const { return all_[i].mutex; }

 private:
  padded_mutex* all_ = nullptr;
};

/// Robust: the price includes the protection against a holder that dies.
class pthread_grip final : public handle {
 public:
  explicit pthread_grip(pthread_mutex_t& m) : mutex_{m} {}
  void lock() override {
    const int code = pthread_mutex_lock(&mutex_);
    must(code == EOWNERDEAD ? pthread_mutex_consistent(&mutex_) : code, "pthread_mutex_lock");
  }
  void unlock() override { must(pthread_mutex_unlock(&mutex_), "pthread_mutex_unlock"); }

 private:
  pthread_mutex_t& mutex_;
};

class pthread_locks final : public subject {
 public:
  explicit pthread_locks(const place& at) : mutexes_{at.folder} {}
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<pthread_grip>(mutexes_[lock]);
  }

 private:
  mapped_mutexes mutexes_;
};

void prepare(const place& at) {
  const mapped_mutexes mutexes{at.folder};
  pthread_mutexattr_t how;
  must(pthread_mutexattr_init(&how), "pthread_mutexattr_init");
  must(pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED), "pthread_mutexattr_setpshared");
  must(pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST), "pthread_mutexattr_setrobust");
  for (unsigned i = 0; i < max_locks; ++i)
    must(pthread_mutex_init(&mutexes[i], &how), "pthread_mutex_init");
  pthread_mutexattr_destroy(&how);
}

std::unique_ptr<subject> open_pthread(const place& at) {
  return std::make_unique<pthread_locks>(at);
}

}  // namespace

const subject_kind pthread_baseline{
    .name = "pthread_robust",
    .counts_operations = false,
    .fits = on_one_host,
    .across_processes = always,
    .prepare = prepare,
    .open = open_pthread,
};

}  // namespace bench
