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

/// One of several that are wanted together.
struct wanted {
  std::shared_ptr<session_impl> session;
  std::shared_ptr<const lock_config> what;
  acquire_params how{};
};

/// What all programs agree on of a store's URL, to take names in one order everywhere: not the
/// user they log in as, nor the order in which they name its servers.
std::string store_in_order(std::string_view url);

/// Of two that are one name of one store, whatever URLs that was opened by.
inline constexpr std::string_view member_twice = "a member twice would wait for itself";

/// Gets all of them, in the order in which they are given, or none: then nothing stays behind. The
/// failure says where it happened.
result<std::vector<lease>> acquire_all(std::span<const wanted> all, wait_time wait,
                                       std::stop_token stop);

/// The same without a thread. If they are all on one session, it does not keep that.
pending<std::vector<lease>> async_acquire_all(std::vector<wanted> all, wait_limit limit,
                                              std::stop_token stop);

}  // namespace holdfast::engine
