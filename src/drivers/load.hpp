#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/driver.hpp>
#include <string_view>

/// Drivers in files of their own, each in one folder: the one beside this library. No variable of
/// the environment names another, and the program's own folder is never looked in.
namespace holdfast::drivers {

/// Whether a file for that store is there. False for a name that could lead to another folder.
bool is_installed(std::string_view store) noexcept;

/// Loads the file, for good. errc::unsupported if there is none (the message says which package has
/// it), or if it is for another version; errc::not_permitted if others could have changed it.
result<const store::driver*> load(std::string_view store);

}  // namespace holdfast::drivers
