#pragma once

#include <string>
#include <string_view>

namespace holdfast::tool {

/// Puts `text` into a file in one step: a reader sees the old content or the new, never a part.
/// Into what is no file, as a FIFO, it is written; one that nobody reads is an error at once, one
/// that stays full after two seconds. Empty if it worked, else what the system said.
std::string replace_file(const std::string& path, std::string_view text);

}  // namespace holdfast::tool
