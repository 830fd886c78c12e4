#pragma once

#include <string>

#include "harness/fault_proxy.hpp"
#include "harness/server_group.hpp"

/// Tests of servers that form a quorum, the same for ZooKeeper and etcd: nobody is granted a lock
/// while another process may still believe that it holds it. `base` is a path that nobody has used;
/// a test that kills servers has them for itself.
namespace harness {

/// Short sessions.
inline constexpr const char* brief = "/locks?session=2s&command_timeout=1s";

void leaders_die_and_come_back(server_group& servers);
void the_majority_is_gone(server_group& servers);
void a_holder_sleeps(const server_group& servers, const std::string& base);
void a_holder_is_killed(const server_group& servers, const std::string& base);
void limited_calls_to_a_server_that_hangs(const server_group& servers, const std::string& base);
/// As described in hung_store.hpp.
void tries_at_a_server_that_hangs(const server_group& servers, const std::string& base);
void a_holder_is_cut_off(const server_group& servers, const std::string& base,
                         const std::string& options);
void connections_are_lost_and_found(const server_group& servers, const std::string& base);
void fifty_are_cut_off_at_once(const server_group& servers, const std::string& base);
/// A bad network delays requests until their names have been given up or released. `by` lists the
/// client's servers, of which one is behind `proxy`.
void late_requests_leave_nothing(const server_group& servers, const std::string& base,
                                 fault_proxy& proxy, const std::string& by);

}  // namespace harness
