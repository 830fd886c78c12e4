#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::tool {

/// The part before the port of [ADDRESS]:PORT, without the brackets of IPv6.
std::string host_of(std::string_view address);

/// The port of :PORT or ADDRESS:PORT; nothing if it is neither.
std::optional<std::uint16_t> port_of(std::string_view address);

/// Whether only this machine can reach that address.
bool is_loopback(std::string_view address);

/// Whether a request's Host names this machine: an IP address, localhost, the machine's name, or
/// one of `names`. Otherwise a web page whose name is made to point here could read the answer (DNS
/// rebinding).
bool is_own_host(std::string_view host, const std::vector<std::string>& names);

/// Whether a request comes from another site's page, by the browser's headers Sec-Fetch-Site,
/// Origin and Host. Without the first two, the request comes from no page, or changes nothing.
bool is_foreign(std::string_view site, std::string_view origin, std::string_view host);

}  // namespace holdfast::tool
