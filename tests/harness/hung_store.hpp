#pragma once

#include <functional>
#include <string>
#include <utility>

#include "harness/fault_proxy.hpp"

namespace harness {

/// How a store is made to take connections and requests, and answer nothing.
struct hang {
  explicit hang(fault_proxy& proxy);
  hang(std::function<void()> begins, std::function<void()> ends)
      : begin(std::move(begins)), end(std::move(ends)) {}
  std::function<void()> begin;
  std::function<void()> end;
  bool only_replicas = false;  ///< the server itself answers
};

/// Calls with a time limit end by themselves while the store hangs, long before its own timeout
/// would end them, and leave nothing behind when it answers again. `through` leads to what hangs
/// and has a command_timeout (or what the store calls so) beyond the bound of a test; `direct`
/// leads around it, if there is a way.
void calls_end_at_their_limit_while_it_hangs(const hang& how, const std::string& through,
                                             const std::string& direct);

/// A try has no limit of its own: the command_timeout of `through`, which is short, ends it, and
/// not the session's store_timeout.
void tries_time_out_while_it_hangs(const hang& how, const std::string& through);

}  // namespace harness
