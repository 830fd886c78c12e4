#include "store/sqlite/database_path.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "base/files.hpp"
#include "base/percent.hpp"
#include "store/sqlite/explain.hpp"

namespace holdfast::store::sqlite {
namespace {

// SQLite's limit is 512, and it appends "-journal".
constexpr std::size_t longest_path = 500;

failure refuse(std::string why) { return {errc::invalid_argument, std::move(why)}; }

result<std::string> canonical(const std::string& path) {
  const std::unique_ptr<char, decltype(&::free)> found{::realpath(path.c_str(), nullptr), &::free};
  if (!found) return explain_errno(errno, "resolving " + path);
  return std::string{found.get()};
}

struct network_file_system {
  unsigned long magic;
  const char* name;
};

// File systems that several machines may share. SQLite's WAL needs memory shared by all processes,
// and the boot clocks and pids of different machines cannot be compared.
constexpr std::array network_file_systems{
    network_file_system{NFS_SUPER_MAGIC, "NFS"},
    network_file_system{SMB_SUPER_MAGIC, "SMB"},
    network_file_system{0xFF534D42, "CIFS"},
    network_file_system{0xFE534D42, "SMB2"},
    network_file_system{V9FS_MAGIC, "9p"},
    network_file_system{FUSE_SUPER_MAGIC, "FUSE (sshfs, virtiofs, a desktop's shared folder …)"},
    network_file_system{CEPH_SUPER_MAGIC, "Ceph"},
    network_file_system{AFS_SUPER_MAGIC, "AFS"},
    network_file_system{0x6B414653, "AFS"},
    network_file_system{CODA_SUPER_MAGIC, "Coda"},
    network_file_system{NCP_SUPER_MAGIC, "NCP"},
    network_file_system{0x0BD00BD0, "Lustre"},
    network_file_system{0x47504653, "GPFS"},
    network_file_system{0x01161970, "GFS2"},
    network_file_system{OCFS2_SUPER_MAGIC, "OCFS2"},
};

const char* network_name(const std::string& directory) noexcept {
  struct statfs found{};
  if (::statfs(directory.c_str(), &found) != 0) return nullptr;
  return network_file_system_name(static_cast<unsigned long>(found.f_type) & 0xffffffffUL);
}

failure refuse_network(const std::string& directory, const char* name) {
  return {errc::unsupported,
          directory + " is on a network file system (" + name +
              "): SQLite cannot share a file between machines there. Use a local disk, or a store "
              "that is a server; if this machine alone uses it, add ?network=allow to the URL"};
}

result<std::string> check_text(std::string_view path) {
  if (path.empty()) return refuse("the database has no path: write sqlite:PATH");
  if (path == ":memory:") {
    return refuse(
        "':memory:' would be a database that no other process can see: use the store memory:");
  }
  if (path.starts_with("file:")) {
    return refuse("SQLite's own file: URLs are not understood here: write sqlite:PATH");
  }
  if (auto ok = base::check_no_tilde(path); !ok) return std::move(ok.error());
  if (path.find('\0') != std::string_view::npos) return refuse("the path holds a NUL byte");
  if (path.back() == '/') return refuse(std::string{path} + " names a directory, not a file");
  return std::string{path};
}

result<std::string> resolve_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  auto found = canonical(directory);
  if (!found && found.error().code == errc::unavailable) {
    return refuse(found.error().what + ". Correct the path, or make the directory first");
  }
  return found;
}

/// 0: unknown.
std::uint64_t mount_of(int descriptor) {
  std::ifstream told("/proc/self/fdinfo/" + std::to_string(descriptor));
  std::uint64_t number = 0;
  for (std::string word; number == 0 && told >> word;) {
    if (word == "mnt_id:") told >> number;
  }
  return number;
}

// SQLite keeps the log beside the file, under the name by which it was opened. So programs that
// open one file by two names have two logs, and do not see each other's locks.
status check_has_one_name(const std::string& path, const struct stat& found) {
  if (found.st_nlink > 1) {
    return failure{errc::unsupported,
                   path +
                       " has other names, too (hard links): programs that open it by another name "
                       "would not see the locks of those that open it by this one. Remove the "
                       "other names, or make symbolic links instead"};
  }
  constexpr int names_it = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  const file_descriptor file(::open(path.c_str(), names_it));
  const file_descriptor folder(::open(directory_of(path).c_str(), names_it));
  if (!is_mounted_alone(file.get(), folder.get())) return done{};
  return failure{errc::unsupported,
                 path +
                     " is mounted here without its folder: programs that open it elsewhere would "
                     "not see the locks of those that open it here. Mount the folder instead (a "
                     "container's volume is a folder)"};
}

// Follows a link to the file, so that all programs agree on the folder beside it.
result<std::string> resolve_file(std::string path) {
  if (auto ok = check_not_planted(path); !ok) return std::move(ok.error());
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return path;
    auto why = explain_errno(errno, "looking at " + path);
    return why.code == errc::not_permitted ? why : refuse(why.what);
  }
  if (S_ISLNK(found.st_mode)) {
    auto target = canonical(path);
    if (!target) return refuse(path + " is a symbolic link to nowhere; remove it");
    path = *target;
    if (auto ok = check_not_planted(path); !ok) return std::move(ok.error());
    ::lstat(path.c_str(), &found);
  }
  if (S_ISDIR(found.st_mode)) return refuse(path + " is a directory; name a file in it");
  if (!S_ISREG(found.st_mode)) return refuse(path + " is not a regular file; name another");
  if (auto ok = check_has_one_name(path, found); !ok) return std::move(ok.error());
  return path;
}

std::string join(std::string directory, std::string_view name) {
  if (directory.back() != '/') directory += '/';
  return directory.append(name);
}

// The right to read a file includes reading the directory's entries; the right to read or write it
// includes entering the directory.
constexpr mode_t folder_mode(mode_t file) noexcept {
  return (file & 0666) | ((file & 0444) >> 2) | ((file & 0222) >> 1);
}

/// The user who created the folder beside the database had the right to write to the parent folder.
/// If everybody with that right may write to the database anyway, it does not matter which user it
/// was.
bool only_users_could_make_it(const std::string& database, const struct stat& file) noexcept {
  struct stat home{};
  if (::stat(directory_of(database).c_str(), &home) != 0) return false;
  return (file.st_mode & S_IWGRP) != 0 && home.st_gid == file.st_gid &&
         (home.st_mode & S_IWOTH) == 0;
}

failure not_ours(const std::string& path) {
  return {errc::not_permitted,
          path +
              " belongs to another user (neither the owner of the database nor the user of this "
              "process), who may want to read the notifications. Remove it, or use a directory "
              "that only its users can write to"};
}

}  // namespace

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

bool may_be_planted(const struct stat& found, const struct stat& folder, uid_t me) noexcept {
  const bool anybody_may = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return anybody_may && found.st_uid != me && found.st_uid != 0 && found.st_uid != folder.st_uid;
}

// In a sticky folder (/tmp) any user may have created the file that is about to be opened: a
// database with forged locks, or a link to a file of this user.
status check_not_planted(const std::string& path) {
  struct stat folder{};
  if (::stat(directory_of(path).c_str(), &folder) != 0) return done{};
  for (const char* const suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::string one = path + suffix;
    struct stat found{};
    if (::lstat(one.c_str(), &found) != 0) continue;
    if (!may_be_planted(found, folder, ::geteuid())) continue;
    return failure{errc::not_permitted,
                   one +
                       " belongs to another user, in a folder in which every user may create "
                       "files. Users who share locks need a folder that only they can write to"};
  }
  return done{};
}

bool is_mounted_alone(int file, int folder) {
  const auto here = mount_of(file), there = mount_of(folder);
  return here != 0 && there != 0 && here != there;
}

const char* network_file_system_name(unsigned long magic) noexcept {
  const auto at = std::find_if(network_file_systems.begin(), network_file_systems.end(),
                               [magic](const auto& known) { return known.magic == magic; });
  return at == network_file_systems.end() ? nullptr : at->name;
}

result<std::string> locate(std::string_view path, bool allow_network) {
  const auto text = check_text(path);
  if (!text) return text.error();
  const auto directory = resolve_directory(*text);
  if (!directory) return directory.error();
  auto file = resolve_file(join(*directory, text->substr(text->rfind('/') + 1)));
  if (!file) return file.error();
  if (file->size() > longest_path) {
    return refuse("the path has " + std::to_string(file->size()) +
                  " bytes and SQLite takes no more than " + std::to_string(longest_path));
  }
  const std::string home = directory_of(*file);
  const char* network = allow_network ? nullptr : network_name(home);
  if (network != nullptr) return refuse_network(home, network);
  return file;
}

std::string shown_url(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code wrong;
  fs::path whole = fs::absolute(path, wrong);  // a textual .. behind a link is wrong
  if (wrong) whole = path;
  const fs::path real = fs::weakly_canonical(whole, wrong);
  std::string url = "sqlite:";
  for (const char c : (wrong ? whole : real).string()) {
    const bool plain = c > ' ' && c != 0x7F && std::string_view("%?#").find(c) == std::string::npos;
    const bool beyond_ascii = static_cast<unsigned char>(c) >= 0x80;
    if (plain || beyond_ascii) {
      url += c;
    } else {
      base::append_percent(url, c);
    }
  }
  return url;
}

result<sidecar> sidecar::open(const std::string& database) {
  struct stat file{};
  if (::stat(database.c_str(), &file) != 0) {
    return explain_errno(errno, "looking at " + database);
  }
  sidecar made;
  made.path_ = path_of(database);
  made.file_mode_ = file.st_mode & 0666;
  made.owner_ = file.st_uid;
  made.group_ = file.st_gid;
  const bool fresh = ::mkdir(made.path_.c_str(), 0700) == 0;
  if (!fresh && errno != EEXIST) return explain_errno(errno, "making the folder " + made.path_);
  made.folder_.reset(::open(made.path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made.folder_) return explain_errno(errno, "opening the folder " + made.path_);
  struct stat folder{};
  ::fstat(made.folder(), &folder);
  const bool trusted = folder.st_uid == file.st_uid || folder.st_uid == ::geteuid() ||
                       folder.st_uid == 0 || only_users_could_make_it(database, file);
  if (!trusted) return not_ours(made.path_);
  const bool shared = made.share(made.folder(), folder_mode(made.file_mode_));
  if (fresh && !shared) return explain_errno(errno, "setting the rights of " + made.path_);
  return made;
}

// Files that were created earlier get the new rights, too, after the rights of the database have
// been changed. A folder that passes its group on keeps doing so.
bool sidecar::share(int file, mode_t mode) const noexcept {
  struct stat found{};
  if (::fstat(file, &found) != 0) return false;
  const uid_t owner = ::geteuid() == 0 ? owner_ : found.st_uid;
  const bool give = found.st_uid != owner || found.st_gid != group_;
  if (give && ::fchown(file, owner, group_) != 0) return false;
  const bool as_wanted = (found.st_mode & 0777) == mode;
  return as_wanted || ::fchmod(file, mode | (found.st_mode & S_ISGID)) == 0;
}

}  // namespace holdfast::store::sqlite
