#include "tool/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tool/fd.hpp"

namespace holdfast::tool {

namespace {

std::string write_in_place(const std::string& path, std::string_view text) {
  const unique_fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  return file && write_all(file.get(), text) ? std::string{} : std::strerror(errno);
}

bool is_special(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode);
}

}  // namespace

std::string replace_file(const std::string& path, std::string_view text) {
  // /dev/stderr and a FIFO are written to, not replaced.
  if (is_special(path)) return write_in_place(path, text);
  const std::string fresh = path + ".new-" + std::to_string(::getpid());
  {
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
    const unique_fd file{::open(fresh.c_str(), flags, 0644)};
    if (!file || !write_all(file.get(), text)) return std::strerror(errno);
  }
  if (std::rename(fresh.c_str(), path.c_str()) == 0) return {};
  const std::string why = std::strerror(errno);
  ::unlink(fresh.c_str());
  return why;
}

}  // namespace holdfast::tool
