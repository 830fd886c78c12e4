#include "harness/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace harness {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

shared_bytes::shared_bytes(const std::string& path, std::size_t size) : size_(size) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) fail("open " + path);
  // Growing never removes what another process has already written.
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) fail("ftruncate " + path);
  data_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (data_ == MAP_FAILED) fail("mmap " + path);
}

shared_bytes::~shared_bytes() { ::munmap(data_, size_); }

}  // namespace harness
