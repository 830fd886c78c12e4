#pragma once

#include <holdfast/store/slot_store.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::store::memcached {

/// The value of a lock's key, which people can read as well: `hf1 <owner> <kind> <capacity> <fence>
/// <since> <note>`. The fence is 0 until the first renewal, which knows it.
std::string write_value(const slot_entry& e);
/// Nothing if the text is anything else.
std::optional<slot_entry> read_value(std::string_view text);
/// The number behind `hf` in a value that any version of holdfast wrote.
std::optional<unsigned> version_of(std::string_view text);

}  // namespace holdfast::store::memcached
