#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tool/survey/history.hpp"
#include "tool/survey/snapshot.hpp"

/// The JSON of holdfast serve that no other command prints. As in json.hpp: schema 1, fields are
/// added, never changed; fences are strings; times are RFC 3339 and seconds.
namespace holdfast::tool {

/// A document without its end, which age_end() makes: many answers share it, each with an age of
/// its own.
std::shared_ptr<const std::string> without_end(std::string document);
/// The age of the oldest data in the document, and the document's end.
std::string age_end(double seconds);
/// The first event of a viewer.
std::string hello_json(std::span<const std::string> stores, bool unlocks);
std::string health_json(std::size_t index, const std::string& store, const store_health& h,
                        std::chrono::system_clock::time_point now);
std::string lock_page_json(const std::string& store, const listed_name& lock,
                           const history::of_name& seen, std::chrono::system_clock::time_point now);
std::string busiest_json(const std::string& store,
                         std::span<const std::pair<std::string, std::uint64_t>> names);

}  // namespace holdfast::tool
