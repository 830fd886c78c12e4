#include "store/sqlite/rights.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>

#include "base/words.hpp"
#include "store/sqlite/database_path.hpp"
#include "store/sqlite/explain.hpp"
#include "store/sqlite/file_descriptor.hpp"

namespace holdfast::store::sqlite {
namespace {

bool exists(const std::string& path) noexcept {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

/// Collects the rights that this user lacks, for one message.
class missing {
 public:
  void need_folder(const std::string& path) {
    if (refused(path, X_OK)) return add("enter the folder " + path, true);
    if (refused(path, W_OK)) add("write to the folder " + path, false);
  }
  void need_file(const std::string& path) {
    if (!exists(path)) return;
    if (refused(path, R_OK)) return add("read and write " + path, true);
    if (refused(path, W_OK)) add("write to " + path, false);
  }
  void need_files_in(const std::string& folder, std::string_view prefix) {
    const std::unique_ptr<DIR, int (*)(DIR*)> all{::opendir(folder.c_str()), &::closedir};
    if (all == nullptr) return;
    while (const dirent* one = ::readdir(all.get())) {
      const std::string_view name{one->d_name};
      if (name.starts_with(prefix)) need_file(folder + "/" + one->d_name);
    }
  }

  /// To be called when the rights to the data, and no others, have been looked at.
  void that_was_the_data() { data_is_readable_ = !unreadable_; }

  status outcome(const std::string& file) const {
    if (mounted_read_only_) return explain_errno(EROFS, "opening " + file);
    if (what_.empty()) return done{};
    return failure{
        unreadable_ ? errc::not_permitted : errc::read_only,
        "opening " + file + ": this user may not " + what_ +
            ". Taking a lock needs all of these rights: grant them, or share the file with "
            "?group=. To read only, " +
            (data_is_readable_ ? "" : "grant the right to read the file, and ") +
            "add ?access=read"};
  }

 private:
  bool refused(const std::string& path, int right) {
    if (::faccessat(AT_FDCWD, path.c_str(), right, AT_EACCESS) == 0) return false;
    mounted_read_only_ = mounted_read_only_ || errno == EROFS;
    return errno == EACCES || errno == EPERM || errno == EROFS;
  }
  void add(const std::string& right, bool unreadable) {
    what_ += (what_.empty() ? "" : ", nor ") + right;
    unreadable_ = unreadable_ || unreadable;
  }

  std::string what_;
  bool unreadable_ = false;
  bool data_is_readable_ = true;
  bool mounted_read_only_ = false;
};

std::optional<gid_t> group_id(const std::string& group) {
  gid_t number = 0;
  if (base::parse_number(group, number)) return number;
  std::array<char, 16'384> room{};
  ::group entry{};
  ::group* found = nullptr;
  ::getgrnam_r(group.c_str(), &entry, room.data(), room.size(), &found);
  return found == nullptr ? std::nullopt : std::optional{found->gr_gid};
}

status check_passes_on(const std::string& folder, const std::string& group, gid_t id) {
  struct stat found{};
  if (::stat(folder.c_str(), &found) != 0) return explain_errno(errno, "looking at " + folder);
  constexpr mode_t passes_on = S_ISGID | S_IRWXG;
  if (found.st_gid == id && (found.st_mode & passes_on) == passes_on) return done{};
  return failure{errc::not_permitted, folder + " does not pass the group " + group +
                                          " on to the files in it: chgrp " + group + " " + folder +
                                          " && chmod g+rwxs " + folder};
}

}  // namespace

status check_rights(const std::string& file) {
  missing rights;
  rights.need_folder(directory_of(file));
  for (const char* const suffix : {"", "-wal", "-shm"}) rights.need_file(file + suffix);
  rights.that_was_the_data();
  const std::string beside = sidecar::path_of(file);
  if (exists(beside)) rights.need_folder(beside);
  rights.need_files_in(beside, "writer-queue");
  return rights.outcome(file);
}

status give_to_group(const std::string& file, const std::string& group) {
  constexpr mode_t shared = 0660;
  const auto id = group_id(group);
  if (!id) return failure{errc::invalid_argument, "there is no group '" + group + "'"};
  if (auto ok = check_passes_on(directory_of(file), group, *id); !ok) return ok;
  // Creates the file without a descriptor: closing one would release the SQLite locks of another
  // session of this process. (A descriptor that only names the file, O_PATH, does not.) A user who
  // may write to the folder may put a link there, to somebody else's file.
  if (::mknod(file.c_str(), S_IFREG | shared, 0) != 0 && errno != EEXIST) {
    return explain_errno(errno, "making " + file);
  }
  const file_descriptor named(::open(file.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat found{};
  if (!named || ::fstat(named.get(), &found) != 0) {
    return explain_errno(errno, "looking at " + file);
  }
  if (!S_ISREG(found.st_mode) || found.st_nlink != 1) {
    return failure{errc::not_permitted, file +
                                            " has other names, too (hard links), or is no regular "
                                            "file: its group is not changed to " +
                                            group};
  }
  if (found.st_gid == *id && (found.st_mode & shared) == shared) return done{};
  const mode_t mode = (found.st_mode & 0777) | shared;
  const std::string itself = "/proc/self/fd/" + std::to_string(named.get());
  if ((found.st_gid == *id ||
       ::fchownat(named.get(), "", static_cast<uid_t>(-1), *id, AT_EMPTY_PATH) == 0) &&
      ::chmod(itself.c_str(), mode) == 0) {
    return done{};
  }
  return failure{errc::not_permitted, file + " belongs to another user and is not shared with " +
                                          group + ": chgrp " + group + " " + file +
                                          " && chmod 660 " + file};
}

}  // namespace holdfast::store::sqlite
