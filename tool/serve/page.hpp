#pragma once

#include <span>
#include <string_view>

namespace holdfast::tool {

/// A file of tool/serve/page, which the build puts into the program.
struct page_file {
  std::string_view path;  ///< as a browser requests it: "/" is index.html
  std::string_view type;
  std::string_view text;
};
std::span<const page_file> page_files() noexcept;

}  // namespace holdfast::tool
