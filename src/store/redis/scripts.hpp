#pragma once

#include <string_view>
#include <vector>

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

/// A file of this folder, put into the library when it is built, and its SHA-1, by which servers
/// call it.
struct script {
  std::string_view text;
  std::string_view sha;
};

script permits_script() noexcept;
script together_script() noexcept;
script countdown_script() noexcept;
script rate_script() noexcept;
script redlock_script() noexcept;
script redisson_script() noexcept;
script redisson_fair_script() noexcept;
script redisson_rw_script() noexcept;
script redisson_permits_script() noexcept;
script redisson_latch_script() noexcept;
script redisson_rate_script() noexcept;
script setnx_script() noexcept;

/// What a server is told when a connection begins.
inline std::vector<script> scripts_of(dialect d) {
  switch (d) {
    case dialect::redlock:
      return {redlock_script()};
    case dialect::redisson:
      return {redisson_script(), redisson_fair_script(), redisson_rw_script(),
              redisson_permits_script(), redisson_latch_script(), redisson_rate_script()};
    case dialect::setnx:
      return {setnx_script()};
    case dialect::none:
      break;
  }
  return {permits_script(), together_script(), countdown_script(), rate_script()};
}

}  // namespace holdfast::store::redis
