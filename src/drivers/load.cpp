#include "drivers/load.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace holdfast::drivers {

namespace {

/// The file that contains this code, as the dynamic linker found it.
std::string library() {
  Dl_info info{};
  const auto* const here = reinterpret_cast<const void*>(&is_installed);
  return dladdr(here, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/') + 1); }

std::string driver_folder() { return folder_of(library()) + HOLDFAST_DRIVER_FOLDER; }

std::string file_of(std::string_view store) {
  return driver_folder() + "/holdfast-store-" + std::string(store) + ".so";
}

failure not_trusted(const std::string& path, const std::string& why) {
  return {errc::not_permitted, "the driver is not loaded: " + path + ' ' + why +
                                   ": a user with that right could run code in this program"};
}

/// A user who can change the file could run code in this process, so only root, the owner of the
/// library and the present user may own it.
status check_trusted(const std::string& path, uid_t library_owner) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) {
    return failure{errc::unsupported, path + ": " + std::generic_category().message(errno)};
  }
  if ((found.st_mode & S_IWOTH) != 0) return not_trusted(path, "is writable by every user");
  if (found.st_uid != 0 && found.st_uid != library_owner && found.st_uid != geteuid()) {
    return not_trusted(path, "belongs to user " + std::to_string(found.st_uid));
  }
  return done{};
}

status check_trusted(std::string_view store) {
  const std::string own = library();
  if (!own.starts_with('/')) {
    return not_trusted(own, "was found by a path that depends on the current folder");
  }
  struct stat found{};
  if (stat(own.c_str(), &found) != 0) {
    return failure{errc::unsupported, own + ": " + std::generic_category().message(errno)};
  }
  for (const auto& path : {driver_folder(), file_of(store)}) {
    if (auto ok = check_trusted(path, found.st_uid); !ok) return ok;
  }
  return done{};
}

failure not_loaded(const std::string& file) {
  const char* const why = dlerror();
  return {errc::unsupported, "the driver " + file + " cannot be loaded: " +
                                 (why != nullptr ? why : "the dynamic linker does not say why")};
}

}  // namespace

bool is_installed(std::string_view store) noexcept {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (store.empty() || !std::all_of(store.begin(), store.end(), plain)) return false;
  try {
    return access(file_of(store).c_str(), F_OK) == 0;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

result<const store::driver*> load(std::string_view store) {
  const std::string file = file_of(store);
  if (!is_installed(store)) {
    return failure{errc::unsupported, "the driver of this store is not installed: there is no " +
                                          file + "; the package holdfast-store-" +
                                          std::string(store) + " has it"};
  }
  if (auto ok = check_trusted(store); !ok) return std::move(ok.error());
  void* const loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (loaded == nullptr) return not_loaded(file);
  using function = const store::driver* (*)();
  const auto get = reinterpret_cast<function>(dlsym(loaded, store::driver_function));
  const store::driver* const driver = get == nullptr ? nullptr : get();
  if (driver == nullptr) {
    return failure{errc::unsupported, "the driver " + file +
                                          " is for another version of holdfast: "
                                          "it does not export " +
                                          store::driver_function};
  }
  return driver;
}

}  // namespace holdfast::drivers
