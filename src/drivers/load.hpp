#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/driver.hpp>
#include <string_view>

/// Loads drivers from files of their own, in one folder: the one beside this library. No
/// environment variable changes that folder, and the program's own folder is never searched.
namespace holdfast::drivers {

/// Whether there is a file for that store. False for a name that could lead to another folder.
bool is_installed(std::string_view store) noexcept;

/// Loads the file, and never unloads it. Fails with errc::unsupported if there is none (the message
/// names its package), or if it is for another version; with errc::not_permitted if other users
/// could have changed it.
result<const store::driver*> load(std::string_view store);

}  // namespace holdfast::drivers
