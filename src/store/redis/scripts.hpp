#pragma once

#include <string_view>
#include <vector>

#include "store/redis/options.hpp"

namespace holdfast::store::redis {

/// A script of this folder, which the build puts into the library, and its SHA-1, by which servers
/// call it.
struct script {
  std::string_view text;
  std::string_view sha;
};

/// Where a script publishes a notification for one session: to the session's channel, for a
/// subscriber at any node; or, in a cluster, first at the node that serves the name's slot.
enum class publication : std::uint8_t { to_all, to_the_slot };
inline publication publication_in(topology t) noexcept {
  return t == topology::cluster ? publication::to_the_slot : publication::to_all;
}

script permits_script(publication how = publication::to_all) noexcept;
script together_script(publication how = publication::to_all) noexcept;
script countdown_script(publication how = publication::to_all) noexcept;
script rate_script() noexcept;
script redlock_script() noexcept;
script redisson_script() noexcept;
script redisson_fair_script() noexcept;
script redisson_rw_script() noexcept;
script redisson_permits_script() noexcept;
script redisson_latch_script() noexcept;
script redisson_rate_script() noexcept;
script setnx_script() noexcept;

/// The scripts to load when a connection begins.
inline std::vector<script> scripts_of(dialect d, publication how = publication::to_all) {
  switch (d) {
    case dialect::redlock:
      return {redlock_script()};
    case dialect::redisson:
      return {redisson_script(),         redisson_fair_script(),  redisson_rw_script(),
              redisson_permits_script(), redisson_latch_script(), redisson_rate_script()};
    case dialect::setnx:
      return {setnx_script()};
    case dialect::none:
      break;
  }
  return {permits_script(how), together_script(how), countdown_script(how), rate_script()};
}

}  // namespace holdfast::store::redis
