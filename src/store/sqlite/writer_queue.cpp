#include "store/sqlite/writer_queue.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "store/sqlite/explain.hpp"

namespace holdfast::store::sqlite {

struct writer_queue::shared {
  std::array<char, 16> mark;
  pthread_mutex_t door;
};

namespace {

constexpr std::array<char, 16> written_by_us{"holdfast door 1"};
constexpr std::size_t file_size = 4096;

// Only programs with the same mutex layout may share a mutex; others use a queue of their own.
std::string file_name() {
#if defined(__GLIBC__)
  const std::string library = "glibc";
#else
  const std::string library = "libc";
#endif
  return "writer-queue-" + library + "-" + std::to_string(sizeof(void*) * 8) + "-" +
         std::to_string(sizeof(pthread_mutex_t));
}

void* map(int file) noexcept {
  void* at = ::mmap(nullptr, file_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : at;
}

bool init_door(pthread_mutex_t& door) noexcept {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  const int error = ::pthread_mutex_init(&door, &kind);
  ::pthread_mutexattr_destroy(&kind);
  return error == 0;
}

timespec monotonic_after(std::chrono::nanoseconds wait) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto at = std::chrono::nanoseconds{now.tv_nsec} + wait;
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  return {now.tv_sec + whole.count(), (at - whole).count()};
}

// The file is created under a name of its own and linked when it is complete, so no process ever
// sees half a queue. The blocks are allocated now, because a full disk met through a mapping would
// end the process.
template <class Shared>
int make(const sidecar& beside, const std::string& name, const std::string& draft) {
  ::unlinkat(beside.folder(), draft.c_str(), 0);
  const file_descriptor file{::openat(beside.folder(), draft.c_str(),
                                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file) return errno;
  int error = ::posix_fallocate(file.get(), 0, file_size);
  if (error == 0 && !beside.share(file.get(), beside.file_mode())) error = errno;
  auto* fresh = error == 0 ? static_cast<Shared*>(map(file.get())) : nullptr;
  if (error == 0 && fresh == nullptr) error = errno;
  if (fresh != nullptr) {
    fresh->mark = written_by_us;
    if (!init_door(fresh->door)) error = ENOTSUP;
    ::munmap(fresh, file_size);
  }
  if (error == 0 &&
      ::linkat(beside.folder(), draft.c_str(), beside.folder(), name.c_str(), 0) != 0 &&
      errno != EEXIST) {
    error = errno;
  }
  ::unlinkat(beside.folder(), draft.c_str(), 0);
  return error;
}

failure damaged(const std::string& path) {
  return {
      errc::corrupt,
      path + " is not a writer queue of holdfast: remove the file, and holdfast creates it again"};
}

}  // namespace

result<writer_queue> writer_queue::open(const sidecar& beside, const std::string& draft) {
  const std::string name = file_name();
  const std::string path = beside.path() + "/" + name;
  const auto look = [&] {
    return ::openat(beside.folder(), name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  };
  file_descriptor file{look()};
  if (!file && errno == ENOENT) {
    const int error = make<shared>(beside, name, draft);
    if (error != 0) return explain_errno(error, "making " + path);
    file.reset(look());
  }
  if (!file) return explain_errno(errno, "opening " + path);
  (void)beside.share(file.get(), beside.file_mode());
  struct stat found{};
  if (::fstat(file.get(), &found) != 0 || static_cast<std::size_t>(found.st_size) != file_size) {
    return damaged(path);
  }
  auto* mapped = static_cast<shared*>(map(file.get()));
  if (mapped == nullptr) return explain_errno(errno, "mapping " + path);
  writer_queue opened{mapped};
  if (mapped->mark != written_by_us) return damaged(path);
  return opened;
}

writer_queue::writer_queue(writer_queue&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)) {}

writer_queue& writer_queue::operator=(writer_queue&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  return *this;
}

writer_queue::~writer_queue() {
  if (mapped_ != nullptr) ::munmap(mapped_, file_size);
}

writer_queue::turn writer_queue::enter(std::chrono::nanoseconds at_most) noexcept {
  int error = ::pthread_mutex_trylock(&mapped_->door);
  if (error == EBUSY) {
    const timespec until = monotonic_after(at_most);
    error = ::pthread_mutex_clocklock(&mapped_->door, CLOCK_MONOTONIC, &until);
  }
  // The mutex guards nothing that can be half done: SQLite rolls back what a dead process left.
  if (error == EOWNERDEAD) error = ::pthread_mutex_consistent(&mapped_->door);
  return turn{error == 0 ? &mapped_->door : nullptr};
}

writer_queue::turn::~turn() {
  if (held_ != nullptr) ::pthread_mutex_unlock(held_);
}

}  // namespace holdfast::store::sqlite
