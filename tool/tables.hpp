#pragma once

#include <chrono>
#include <holdfast/session.hpp>
#include <holdfast/store/capabilities.hpp>
#include <span>
#include <string>

#include "tool/listed_name.hpp"

/// What try, list and show print for people.
namespace holdfast::tool {

std::string try_text(const name_info& info, bool free, std::chrono::system_clock::time_point now);
/// `wide`: nothing is cut. `bold`: headings stand out.
std::string list_text(std::span<const listed_name> names, std::chrono::system_clock::time_point now,
                      bool wide, bool bold);
std::string show_text(const name_info& info, const std::string& store,
                      const store::capabilities& can, std::chrono::system_clock::time_point now,
                      bool bold);

}  // namespace holdfast::tool
