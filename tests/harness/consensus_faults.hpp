#pragma once

#include <string>

#include "harness/fault_proxy.hpp"
#include "harness/server_group.hpp"

/// What servers that agree among themselves have to stand, the same for ZooKeeper and etcd: nobody
/// is let in while another may still believe that it is in. `base` is a path that nobody has used;
/// who kills servers has them for itself.
namespace harness {

/// Their sessions are short.
inline constexpr const char* brief = "/locks?session=2s&command_timeout=1s";

void leaders_die_and_come_back(server_group& servers);
void the_majority_is_gone(server_group& servers);
void a_holder_sleeps(const server_group& servers, const std::string& base);
void a_holder_is_killed(const server_group& servers, const std::string& base);
void limited_calls_to_a_server_that_hangs(const server_group& servers, const std::string& base);
/// As hung_store.hpp says.
void tries_at_a_server_that_hangs(const server_group& servers, const std::string& base);
void a_holder_is_cut_off(const server_group& servers, const std::string& base,
                         const std::string& options);
void connections_are_lost_and_found(const server_group& servers, const std::string& base);
void fifty_are_cut_off_at_once(const server_group& servers, const std::string& base);
/// Requests that a bad network holds back until their names have been given up, or back. `by` are
/// the servers of the client that it happens to: one of them behind `proxy`.
void late_requests_leave_nothing(const server_group& servers, const std::string& base,
                                 fault_proxy& proxy, const std::string& by);

}  // namespace harness
