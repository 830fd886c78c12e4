#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>

// Preloaded into the tests, and into the programs and servers that they start (make delayed-tests):
// random calls take longer, as on a machine that is busy with other work. $HOLDFAST_DELAYS is the
// seed. A test that fails then depends on when something happens, or the product does.
namespace {

std::uint64_t seed() {
  const char* const text = std::getenv("HOLDFAST_DELAYS");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

/// Between 0 and 1; a sequence of its own for each thread (xorshift64*).
double random_share() {
  thread_local std::uint64_t state =
      (seed() * 0x9E37'79B9'7F4A'7C15) ^
      (static_cast<std::uint64_t>(::syscall(SYS_gettid)) * 0xBF58'476D'1CE4'E5B9) ^ 1;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return static_cast<double>((state * 0x2545'F491'4F6C'DD1D) >> 11) * 0x1p-53;
}

/// The caller may be between a call and its look at errno.
void sleep_ms(double ms) {
  const int before = errno;
  const timespec time{0, static_cast<long>(ms * 1e6)};
  ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
  errno = before;
}

void delay_sometimes() {
  const double one = random_share();
  if (one < 0.002) return sleep_ms(150 * random_share());
  if (one < 0.02) sleep_ms(20 * random_share());
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

template <class F, class... Args>
auto delayed(F* call, Args... args) {
  delay_sometimes();
  const auto result = call(args...);
  delay_sometimes();
  return result;
}

struct start {
  void* (*run)(void*);
  void* with;
};

void* run_late(void* of) {
  const std::unique_ptr<start> mine(static_cast<start*>(of));
  if (random_share() < 0.3) sleep_ms(15 * random_share());
  return mine->run(mine->with);
}

}  // namespace

extern "C" {

ssize_t send(int fd, const void* from, size_t size, int flags) {
  static auto* const call = next<decltype(send)>("send");
  return delayed(call, fd, from, size, flags);
}

ssize_t sendmsg(int fd, const msghdr* what, int flags) {
  static auto* const call = next<decltype(sendmsg)>("sendmsg");
  return delayed(call, fd, what, flags);
}

ssize_t recv(int fd, void* into, size_t size, int flags) {
  static auto* const call = next<decltype(recv)>("recv");
  return delayed(call, fd, into, size, flags);
}

ssize_t recvmsg(int fd, msghdr* into, int flags) {
  static auto* const call = next<decltype(recvmsg)>("recvmsg");
  return delayed(call, fd, into, flags);
}

int poll(pollfd* all, nfds_t count, int timeout) {
  static auto* const call = next<decltype(poll)>("poll");
  return delayed(call, all, count, timeout);
}

int epoll_wait(int fd, epoll_event* into, int count, int timeout) {
  static auto* const call = next<decltype(epoll_wait)>("epoll_wait");
  return delayed(call, fd, into, count, timeout);
}

int connect(int fd, const sockaddr* to, socklen_t size) {
  static auto* const call = next<decltype(connect)>("connect");
  return delayed(call, fd, to, size);
}

int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*run)(void*),
                   void* with) noexcept {
  static auto* const call = next<decltype(pthread_create)>("pthread_create");
  auto mine = std::make_unique<start>(start{run, with});
  const int result = call(made, how, run_late, mine.get());
  if (result == 0) (void)mine.release();
  delay_sometimes();
  return result;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const call = next<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
  if (random_share() < 0.0002) sleep_ms(20 * random_share());
  return call(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static auto* const call = next<decltype(pthread_mutex_unlock)>("pthread_mutex_unlock");
  const int result = call(mutex);
  if (random_share() < 0.002) sleep_ms(10 * random_share());
  return result;
}

}  // extern "C"
