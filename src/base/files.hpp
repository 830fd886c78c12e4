#pragma once

#include <holdfast/result.hpp>
#include <string>
#include <string_view>

/// What the drivers and open() read from files that a URL names.
namespace holdfast::base {

/// The first line of a small file: a password, a URL. A pipe will do whose writer ends the line
/// within five seconds; one without a writer is empty. Fails with what the system said.
result<std::string> first_line(const std::string& path);

/// For a file that a client library opens by itself. Fails if it is a FIFO: to open one takes for
/// ever while nobody writes to it. Whether it can be read is the library's to say.
status check_no_fifo(std::string_view option, const std::string& path);

/// Only a shell knows what ~ stands for, and it looks at the beginning of a word only, which a path
/// in a URL never is. Fails if the path begins with ~/, instead of looking for a folder of that
/// name.
status check_no_tilde(std::string_view path);

}  // namespace holdfast::base
