#pragma once

#include <string>

/// The users that docs/stores/*.md says are enough: they may do what that page grants to `app`, in
/// its own words, and nothing else.
namespace harness {

/// On a server whose `url` is an administrator's: makes a fresh store (a schema, a database) of
/// that name, and gives the user of least rights what it needs there. The URL of that user.
std::string as_user_of_least_rights(const std::string& url, const std::string& store);

/// The statements of a page of docs/stores/ that give rights to `app`.
std::string rights_on_page(const std::string& page);

}  // namespace harness
