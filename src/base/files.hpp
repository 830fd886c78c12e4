#pragma once

#include <holdfast/result.hpp>
#include <string>
#include <string_view>

/// Files named in a URL, which the drivers and open() read.
namespace holdfast::base {

/// The first line of a small file: a password, a URL. The file may be a pipe if its writer ends the
/// line within five seconds; a pipe without a writer is empty. Fails with the system's message.
result<std::string> first_line(const std::string& path);

/// For a file that a client library opens by itself. Fails if the file is a FIFO: opening one
/// blocks until a program writes to it. The library reports if the file cannot be read.
status check_no_fifo(std::string_view option, const std::string& path);

/// Fails if the path begins with ~/, instead of using a folder of that name. Only a shell replaces
/// ~, and only at the beginning of a word, where a path in a URL never is.
status check_no_tilde(std::string_view path);

}  // namespace holdfast::base
