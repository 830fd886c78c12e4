#include "harness/temp_dir.hpp"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

namespace harness {

temp_dir::temp_dir(const std::filesystem::path& in) {
  std::string pattern = (in / "holdfast-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
  }
  path_ = pattern;
}

temp_dir::~temp_dir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace harness
