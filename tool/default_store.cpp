#include "tool/default_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/fd.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

bool is_own_folder(const std::string& path) {
  struct stat s{};
  return ::lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == ::geteuid();
}

/// A cron job has no XDG_RUNTIME_DIR, but should meet the shell of the same user.
std::string runtime_folder() {
  if (const char* set = std::getenv("XDG_RUNTIME_DIR"); set && *set == '/') {
    if (is_own_folder(set)) return set;
  }
  const std::string usual = "/run/user/" + std::to_string(::geteuid());
  return is_own_folder(usual) ? usual : std::string{};
}

[[noreturn]] void refuse(const std::string& folder, const std::string& why) {
  throw failure_exit(exit_code::config, "can not keep locks in " + printable(folder) + ": " + why +
                                            "; name a store: --store sqlite:PATH");
}

void make_private(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse(folder, std::strerror(errno));
  struct stat s{};
  // lstat: in /tmp somebody else may have put a link there before us.
  if (::lstat(folder.c_str(), &s) != 0) refuse(folder, std::strerror(errno));
  if (!S_ISDIR(s.st_mode)) refuse(folder, "it is not a folder");
  if (s.st_uid != ::geteuid()) refuse(folder, "it belongs to another user");
  if ((s.st_mode & 077U) != 0) refuse(folder, "others can enter it (chmod 700 makes it private)");
}

}  // namespace

default_store find_default_store() {
  const std::string runtime = runtime_folder();
  const std::string folder =
      runtime.empty() ? "/tmp/holdfast-" + std::to_string(::geteuid()) : runtime + "/holdfast";
  make_private(folder);
  const std::string marker = folder + "/told";
  const unique_fd made{::open(marker.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)};
  return {"sqlite:" + folder + "/locks.db", static_cast<bool>(made)};
}

}  // namespace holdfast::tool
