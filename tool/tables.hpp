#pragma once

#include <array>
#include <chrono>
#include <holdfast/session.hpp>
#include <holdfast/store/capabilities.hpp>
#include <span>
#include <string>
#include <string_view>

#include "tool/listed_name.hpp"

/// The output of try, list, show and top for people.
namespace holdfast::tool {

/// Why no name is shown: none is in use, or the filters hide all. `text`: top's own filter, if any.
std::string no_names_text(const name_choice& which, std::string_view text = {});

std::string try_text(const name_info& info, bool free, std::chrono::system_clock::time_point now);
/// `which`: how the names were chosen. `wide`: nothing is cut. `bold`: headings are emphasised.
std::string list_text(std::span<const listed_name> names, const name_choice& which,
                      std::chrono::system_clock::time_point now, bool wide, bool bold);
/// `one_file`: the store is a file, and has no failover.
std::string show_text(const name_info& info, std::span<const rate_bucket> buckets,
                      const std::string& store, const store::capabilities& can, bool one_file,
                      std::chrono::system_clock::time_point now, bool bold);

/// Holders and queue of one name.
std::string name_text(const name_info& info, std::chrono::system_clock::time_point now, bool bold);

/// Name, kind, holder, held, lease, waiting, oldest wait, reason: nothing is cut.
std::array<std::string, 8> top_cells(const listed_name& n,
                                     std::chrono::system_clock::time_point now);
/// The whole content of top, as a finite table.
std::string top_text(std::span<const listed_name> names, const name_choice& which,
                     std::chrono::system_clock::time_point now);

}  // namespace holdfast::tool
