#include "bench/shared_state.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <fstream>
#include <string>
#include <system_error>

namespace bench {
namespace {

// Without FUTEX_PRIVATE_FLAG: the waiters may be in other processes.
long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  static_assert(sizeof word == sizeof(std::uint32_t));
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void baton::set(std::uint32_t value) {
  value_ = value;
  futex(value_, FUTEX_WAKE, INT_MAX, nullptr);
}

bool baton::wait_for(std::uint32_t wanted, std::chrono::milliseconds at_most) const {
  const auto until = clock::now() + at_most;
  for (std::uint32_t seen = value_; seen < wanted; seen = value_) {
    const auto left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(until - clock::now()).count();
    if (left <= 0) return false;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    futex(value_, FUTEX_WAIT, seen, &timeout);
  }
  return true;
}

void baton::wait_for(std::uint32_t wanted) const {
  while (!wait_for(wanted, std::chrono::minutes{1})) {
  }
}

shared_state_mapping::shared_state_mapping(std::filesystem::path file) : file_{std::move(file)} {
  const int fd = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(shared_state)) != 0) {
    throw std::system_error{errno, std::generic_category(), file_.string()};
  }
  void* at = mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) throw std::system_error{errno, std::generic_category(), "mmap"};
  shared_state_ = static_cast<shared_state*>(at);
}

shared_state_mapping::~shared_state_mapping() { munmap(shared_state_, sizeof(shared_state)); }

bool is_asleep(std::int32_t tid) {
  std::ifstream stat{"/proc/" + std::to_string(tid) + "/stat"};
  std::string text;
  std::getline(stat, text);
  const auto name_end = text.rfind(") ");
  return name_end != text.npos && text[name_end + 2] == 'S';
}

}  // namespace bench
