#pragma once

#include <string>
#include <string_view>

namespace holdfast::tool {

/// What stands before the port of [ADDRESS]:PORT, without the brackets of IPv6.
std::string host_of(std::string_view address);

/// Whether only this machine reaches what listens there.
bool is_loopback(std::string_view address);

/// Whether a request's Host names this machine: an IP address, localhost, the machine's name, or
/// `listening`. A web page whose name somebody points here could read the answer otherwise (DNS
/// rebinding).
bool is_own_host(std::string_view host, std::string_view listening);

}  // namespace holdfast::tool
