#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <holdfast/result.hpp>

#include <string>
#include <string_view>
#include "store/sqlite/file_descriptor.hpp"

namespace holdfast::store::sqlite {

/// Checks where the database is to be, before anything is made: its canonical path, so that
/// programs that reach it by different links agree on what lies beside it.
result<std::string> locate(std::string_view path, bool allow_network);

/// What people see of the database at `path`: one URL, whatever the folder from which it was named,
/// and the links on the way. Also of one that is not there.
std::string shown_url(const std::string& path);

/// Fails for a database, a file beside it, or a link of another user in a folder like /tmp, where
/// every user may put one: its owner could forge every lock in it. Root and the owner of the folder
/// are trusted.
status check_not_planted(const std::string& path);
/// What it decides about one file or link, as this user.
bool may_be_planted(const struct stat& found, const struct stat& folder, uid_t me) noexcept;

/// "." for a bare name.
std::string directory_of(const std::string& path);

/// The name of a kind of file system (statfs f_type) that several machines may share, or null.
const char* network_file_system_name(unsigned long magic) noexcept;

/// The folder PATH-holdfast: where the writer queue and the inboxes are. A user who may write to
/// the database may write here; nobody else.
class sidecar {
 public:
  static std::string path_of(const std::string& database) { return database + "-holdfast"; }
  /// Makes it if need be. The database file is there already.
  static result<sidecar> open(const std::string& database);

  int folder() const noexcept { return folder_.get(); }
  const std::string& path() const noexcept { return path_; }
  /// For files that all users of the database read and write.
  mode_t file_mode() const noexcept { return file_mode_; }
  /// Gives a file made here those rights, the group of the database and, if root made it, its
  /// owner.
  bool share(int file, mode_t mode) const noexcept;

 private:
  file_descriptor folder_;
  std::string path_;
  mode_t file_mode_ = 0600;
  uid_t owner_ = 0;
  gid_t group_ = 0;
};

}  // namespace holdfast::store::sqlite
