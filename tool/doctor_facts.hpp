#pragma once

#include <holdfast/store/identity.hpp>
#include <string_view>

#include "tool/finding.hpp"

namespace holdfast::tool {

/// What the settings of a store mean for locks: version, persistence, replicas, eviction. `url`
/// (url_of_store) names the store, and the session's requirements. An unknown scheme is a finding.
/// Pure.
findings judge_facts(std::string_view url, const store::facts& all);

}  // namespace holdfast::tool
