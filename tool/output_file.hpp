#pragma once

#include <string>
#include <string_view>

namespace holdfast::tool {

/// What a path of an output leads to.
struct output_place {
  std::string path;
  bool in_place = false;  ///< no ordinary file, or one that is open (/dev/stdout): never replaced
  int open_as = -1;       ///< the descriptor of this program that it stands for
};
output_place place_of_output(const std::string& path);

/// What an earlier program left there is not taken for the new one's. In place nothing is removed.
void remove_output(const std::string& path);

/// Puts `text` into a file in one step: a reader sees the old content or the new, never a part.
/// Into what is no file, as a FIFO, and to /dev/stdout or /dev/stderr, it is written; a FIFO that
/// nobody reads is an error at once, one that stays full after two seconds. Empty if it worked,
/// else what the system said.
std::string replace_file(const std::string& path, std::string_view text);

}  // namespace holdfast::tool
