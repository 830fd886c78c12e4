#pragma once

#include <string>

#include "tool/fd.hpp"

namespace holdfast::tool {

struct default_store {
  std::string url;
  std::string folder;
  /// Locked for as long as the store is in use: cleaners of /var/tmp (systemd-tmpfiles) leave such
  /// a folder alone.
  unique_fd in_use{};
};

/// `/var/tmp/holdfast-UID`, whatever the environment says: a login, sudo and cron have different
/// variables and temporary folders, and must find the same locks.
std::string default_folder();

/// `sqlite:FOLDER/locks.db`.
std::string default_url(const std::string& folder);

/// The default store. Creates the folder (0700), and refuses one that others own or can enter.
/// Throws failure_exit.
default_store find_default_store(const std::string& folder = default_folder());

/// True once for a store: a person reads our messages, and no message about this file was written
/// yet.
bool is_to_be_told(const default_store& store, bool a_person_reads);

}  // namespace holdfast::tool
