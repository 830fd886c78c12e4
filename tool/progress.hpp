#pragma once

#include <sys/types.h>

#include <chrono>
#include <holdfast/session.hpp>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// Which of the participants we are.
struct ourselves {
  std::string host;
  pid_t pid = 0;
};
ourselves who_we_are();

/// `waiting for deploy · held by web-3 pid 812 for 42s · you are 3rd`
std::string waiting_line(const name_info& info, const ourselves& us,
                         std::chrono::system_clock::time_point now);

/// ` · held by web-3 pid 812 for 42s and 2 more`; empty if nobody holds it.
std::string held_by(const name_info& info, std::chrono::system_clock::time_point now);

/// `web-3 pid 812 for 42s`, as far as it is known; otherwise `another program`
std::string holder_phrase(const participant& p, std::chrono::system_clock::time_point now);

}  // namespace holdfast::tool
