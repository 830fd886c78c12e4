#pragma once

#include <holdfast/store/identity.hpp>
#include <string_view>

#include "tool/finding.hpp"

namespace holdfast::tool {

/// What the settings of a store mean for locks: version, persistence, replicas, eviction. `url`
/// (url_of_store) says which store it is, and what the session asks of it. A finding says if its
/// scheme is not known here. Pure.
findings judge_facts(std::string_view url, const store::facts& all);

}  // namespace holdfast::tool
