#pragma once

#include <optional>
#include <string>

namespace holdfast::tool {

/// A page's request for an unlock.
struct unlock_request {
  std::string lock;
  std::string owner;
  std::string reason;
};

/// The request in `{"lock":…,"owner":…,"reason":…}`; nothing if it names no lock, or is malformed.
std::optional<unlock_request> unlock_request_of(const std::string& body);

}  // namespace holdfast::tool
