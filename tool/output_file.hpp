#pragma once

#include <string>
#include <string_view>

namespace holdfast::tool {

/// The target of an output path.
struct output_place {
  std::string path;
  bool in_place = false;  ///< not an ordinary file, or an open one (/dev/stdout): never replaced
  int open_as = -1;       ///< the descriptor of this program that it stands for
};
output_place place_of_output(const std::string& path);

/// Removes an earlier program's output, so that nobody takes it for the new one. A target that is
/// written in place is left alone.
void remove_output(const std::string& path);

/// Replaces the content of a file in one step: a reader sees the old content or the new, never a
/// part. If the target is not an ordinary file, such as a FIFO, /dev/stdout or /dev/stderr, the
/// text is written to it; a FIFO without a reader is an error at once, a full one after two
/// seconds. Returns an empty text on success, otherwise the system's message.
std::string replace_file(const std::string& path, std::string_view text);

}  // namespace holdfast::tool
