#include "harness/temp_dir.hpp"

#include <stdlib.h>

#include <cerrno>
#include <iostream>
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
  // A server that is shutting down may still write a file into a folder that was found empty.
  std::error_code left;
  for (int again = 0; again < 1'000; ++again) {
    std::filesystem::remove_all(path_, left);
    if (!left) return;
  }
  std::cerr << "left behind: " << path_ << ": " << left.message() << '\n';
}

}  // namespace harness
