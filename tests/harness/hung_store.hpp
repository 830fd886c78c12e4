#pragma once

#include <functional>
#include <string>
#include <utility>

#include "harness/fault_proxy.hpp"

namespace harness {

/// How a store is made to accept connections and requests, and answer none.
struct hang {
  explicit hang(fault_proxy& proxy);
  hang(std::function<void()> begins, std::function<void()> ends)
      : begin(std::move(begins)), end(std::move(ends)) {}
  std::function<void()> begin;
  std::function<void()> end;
  bool only_replicas = false;  ///< the server itself answers
};

/// Calls with a time limit end by themselves while the store hangs, long before its own time-out
/// would end them, and leave nothing behind when the store answers again. `through` leads to the
/// part that hangs and has a command_timeout (or the store's name for it) beyond a test's time
/// limit; `direct` bypasses that part, if there is a way.
void calls_end_at_their_limit_while_it_hangs(const hang& how, const std::string& through,
                                             const std::string& direct);

/// A try has no limit of its own: the short command_timeout of `through` ends it, not the session's
/// store_timeout.
void tries_time_out_while_it_hangs(const hang& how, const std::string& through);

}  // namespace harness
