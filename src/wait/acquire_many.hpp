#pragma once

#include <holdfast/timed.hpp>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "wait/acquire.hpp"
#include "wait/pending_wait.hpp"

namespace holdfast::engine {

/// One of several locks that are acquired together.
struct wanted {
  std::shared_ptr<session_impl> session;
  std::shared_ptr<const lock_config> what;
  acquire_params how{};
};

/// The part of a store's URL by which all programs sort names into one order: without the user's
/// credentials, and with the servers sorted.
std::string store_in_order(std::string_view url);

/// The failure for two members that are one name of one store, whatever URLs opened the store.
inline constexpr std::string_view member_twice = "a member twice would wait for itself";

/// Acquires all locks in the given order, or none; after a failure nothing stays behind. The
/// failure says which name was in the way.
result<std::vector<lease>> acquire_all(std::span<const wanted> all, wait_time wait,
                                       std::stop_token stop);

/// The same without a thread. If all locks belong to one session, the operation does not keep that
/// session alive.
pending<std::vector<lease>> async_acquire_all(std::vector<wanted> all, wait_limit limit,
                                              std::stop_token stop);

}  // namespace holdfast::engine
