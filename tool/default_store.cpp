#include "tool/default_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/fd.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

[[noreturn]] void refuse(const std::string& folder, const std::string& why) {
  throw failure_exit(exit_code::config, "cannot keep locks in " + printable(folder) + ": " + why +
                                            "; name a store: --store sqlite:PATH");
}

void make_private(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    refuse(folder, errno == ENOENT ? "the folder above it is missing" : std::strerror(errno));
  }
  struct stat s{};
  // lstat: in /var/tmp another user may have put a link there before us.
  if (::lstat(folder.c_str(), &s) != 0) refuse(folder, std::strerror(errno));
  if (!S_ISDIR(s.st_mode)) refuse(folder, "it is not a folder");
  if (s.st_uid != ::geteuid()) refuse(folder, "it belongs to another user");
  if ((s.st_mode & 077U) != 0) refuse(folder, "others can enter it (chmod 700 makes it private)");
}

bool is_still_at(const unique_fd& open, const std::string& folder) {
  struct stat here{}, there{};
  return ::fstat(open.get(), &here) == 0 && ::lstat(folder.c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

// A cleaner locks the folder for a moment, and would remove the files under us in that moment, or
// the folder before we have locked it.
unique_fd make_and_keep(const std::string& folder) {
  while (true) {
    make_private(folder);
    unique_fd in_use{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!in_use && errno == ENOENT) continue;
    if (!in_use || ::flock(in_use.get(), LOCK_SH) != 0) {
      refuse(folder,
             std::string("it cannot be kept from being cleaned up: ") + std::strerror(errno));
    }
    if (is_still_at(in_use, folder)) return in_use;
  }
}

}  // namespace

std::string default_folder() { return "/var/tmp/holdfast-" + std::to_string(::geteuid()); }

std::string default_url(const std::string& folder) { return "sqlite:" + folder + "/locks.db"; }

default_store find_default_store(const std::string& folder) {
  auto in_use = make_and_keep(folder);
  return {default_url(folder), folder, std::move(in_use)};
}

bool is_to_be_told(const default_store& store, bool a_person_reads) {
  if (!a_person_reads) return false;
  const std::string marker = store.folder + "/told";
  const unique_fd made{::open(marker.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)};
  return static_cast<bool>(made);
}

}  // namespace holdfast::tool
