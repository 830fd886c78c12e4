#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <holdfast/result.hpp>

#include <string>
#include <string_view>
#include "store/sqlite/file_descriptor.hpp"

namespace holdfast::store::sqlite {

/// Checks the path of the database before anything is created. Returns the canonical path, so that
/// programs that reach the file by different links agree on the files beside it.
result<std::string> locate(std::string_view path, bool allow_network);

/// The URL that people see for the database at `path`: the same one from whatever folder and by
/// whatever links the path was given. The file need not exist.
std::string shown_url(const std::string& path);

/// Fails for a database, a file beside it, or a link that belongs to another user, in a folder like
/// /tmp where every user may create files: the owner could forge every lock in it. Root and the
/// owner of the folder are trusted.
status check_not_planted(const std::string& path);
/// The decision about one file or link, for this user.
bool may_be_planted(const struct stat& found, const struct stat& folder, uid_t me) noexcept;

/// Whether the file was mounted by itself: files beside it are not those beside the same file
/// elsewhere. False if /proc does not tell.
bool is_mounted_alone(int file, int folder);

/// "." for a bare name.
std::string directory_of(const std::string& path);

/// The name of a kind of file system (statfs f_type) that several machines may share, or null.
const char* network_file_system_name(unsigned long magic) noexcept;

/// The folder PATH-holdfast: it has the writer queue and the inboxes. A user who may write to the
/// database may write here; no other user may.
class sidecar {
 public:
  static std::string path_of(const std::string& database) { return database + "-holdfast"; }
  /// Creates the folder if necessary. The database file exists already.
  static result<sidecar> open(const std::string& database);

  int folder() const noexcept { return folder_.get(); }
  const std::string& path() const noexcept { return path_; }
  /// For files that all users of the database read and write.
  mode_t file_mode() const noexcept { return file_mode_; }
  /// Gives a file that was created here those rights, the group of the database and, if root
  /// created it, the database's owner.
  bool share(int file, mode_t mode) const noexcept;

 private:
  file_descriptor folder_;
  std::string path_;
  mode_t file_mode_ = 0600;
  uid_t owner_ = 0;
  gid_t group_ = 0;
};

}  // namespace holdfast::store::sqlite
