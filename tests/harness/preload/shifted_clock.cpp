#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

// Preloaded into a process whose clocks a test sets. Adds microseconds from the file that
// $HOLDFAST_CLOCK_SHIFT names: the first number to the wall clock, the second to CLOCK_BOOTTIME, as
// a suspended machine would. Waits use the monotonic clock. libfaketime is no alternative: in a
// server that allocates with jemalloc it calls itself until it gives up.
namespace {

struct shifts {
  std::atomic<std::int64_t> wall_us, boot_us;
};
shifts* shift = nullptr;

__attribute__((constructor)) void map_shift() {
  const char* const path = std::getenv("HOLDFAST_CLOCK_SHIFT");
  const int fd = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* const page = ::mmap(nullptr, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (page != MAP_FAILED) shift = static_cast<shifts*>(page);
}

timespec read(clockid_t id, const std::atomic<std::int64_t>* by_us) {
  timespec t{};
  ::syscall(SYS_clock_gettime, id, &t);
  constexpr std::int64_t billion = 1'000'000'000;
  const std::int64_t by = by_us == nullptr ? 0 : by_us->load() * 1000;
  const std::int64_t ns = t.tv_sec * billion + t.tv_nsec + by;
  return {ns / billion, ns % billion};
}

timespec wall() { return read(CLOCK_REALTIME, shift == nullptr ? nullptr : &shift->wall_us); }
timespec boot() { return read(CLOCK_BOOTTIME, shift == nullptr ? nullptr : &shift->boot_us); }

bool is_wall(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t id, timespec* t) noexcept {
  if (!is_wall(id) && id != CLOCK_BOOTTIME)
    return static_cast<int>(::syscall(SYS_clock_gettime, id, t));
  *t = is_wall(id) ? wall() : boot();
  return 0;
}

int gettimeofday(timeval* t, void*) noexcept {
  const timespec now = wall();
  *t = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* t) noexcept {
  const time_t now = wall().tv_sec;
  if (t != nullptr) *t = now;
  return now;
}

}  // extern "C"
