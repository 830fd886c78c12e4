#pragma once

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <string>

#include "harness/crowd.hpp"
#include "harness/etcd_cluster.hpp"

namespace etcd_test {

using harness::thrown_by;

/// Three servers, shared by the tests that leave their servers as they are.
const harness::etcd_cluster& calm_cluster();

/// A prefix that nobody has used.
std::string fresh_base();

/// The keys below it, one a line.
std::string keys_below(const std::string& prefix);
/// The number of keys below it.
long count_below(const std::string& prefix);

}  // namespace etcd_test
