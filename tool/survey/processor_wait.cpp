#include "tool/survey/processor_wait.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace holdfast::tool {

processor_wait::processor_wait() noexcept
    : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

processor_wait::~processor_wait() {
  if (file_ >= 0) ::close(file_);
}

// "TIME-ON-A-PROCESSOR TIME-READY TURNS", in nanoseconds.
std::chrono::nanoseconds processor_wait::sum() const noexcept {
  std::array<char, 96> text{};
  const auto size = file_ < 0 ? 0 : ::pread(file_, text.data(), text.size(), 0);
  if (size <= 0) return {};
  const std::string_view read{text.data(), static_cast<std::size_t>(size)};
  const auto blank = read.find(' ');
  if (blank == read.npos) return {};
  std::int64_t ready = 0;
  std::from_chars(read.data() + blank + 1, read.data() + read.size(), ready);
  return std::chrono::nanoseconds{ready};
}

}  // namespace holdfast::tool
