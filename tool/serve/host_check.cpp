#include "tool/serve/host_check.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace holdfast::tool {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool alike(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool is_address(const std::string& host) {
  if (host.find('\0') != host.npos) return false;  // the C function would stop there
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

/// Whether it is this machine's name, whole or up to the first dot.
bool is_own_name(std::string_view host) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string_view whole = name.data();
  if (whole.empty()) return false;
  return alike(host, whole) || alike(host, whole.substr(0, whole.find('.')));
}

/// The name or address in a request's Host; nothing if it is followed by something other than a
/// port.
std::optional<std::string> without_port(std::string_view host) {
  const bool in_brackets = host.starts_with('[');
  const auto end = host.find(in_brackets ? ']' : ':');
  if (end == host.npos && in_brackets) return std::nullopt;
  std::string name(in_brackets ? host.substr(1, end - 1) : host.substr(0, end));
  host.remove_prefix(std::min(in_brackets ? end + 1 : end, host.size()));
  const bool ends = host.empty() ||
                    (host.starts_with(':') && host.find_first_not_of("0123456789", 1) == host.npos);
  if (!ends) return std::nullopt;
  return name;
}

}  // namespace

std::string host_of(std::string_view address) {
  if (address.starts_with('[')) return std::string(address.substr(1, address.find(']') - 1));
  return std::string(address.substr(0, address.rfind(':')));
}

std::optional<std::uint16_t> port_of(std::string_view address) {
  const auto colon = address.rfind(':');
  if (colon == address.npos) return std::nullopt;
  const auto before = address.substr(0, colon), digits = address.substr(colon + 1);
  const bool in_brackets = before.starts_with('[') && before.find(']') == before.size() - 1;
  if (!in_brackets && before.find_first_of(":[]") != before.npos) return std::nullopt;
  std::uint16_t port = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || bad != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  return port;
}

bool is_loopback(std::string_view address) {
  const std::string host = host_of(address);
  return host.empty() || alike(host, "localhost") || host == "::1" ||
         (host.starts_with("127.") && is_address(host));
}

bool is_own_host(std::string_view host, const std::vector<std::string>& names) {
  const auto bare = without_port(host);
  if (!bare) return false;
  return is_address(*bare) || alike(*bare, "localhost") || is_own_name(*bare) ||
         std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return !name.empty() && alike(*bare, name); });
}

bool is_foreign(std::string_view site, std::string_view origin, std::string_view host) {
  if (!site.empty()) return site != "same-origin" && site != "none";
  if (origin.empty()) return false;
  for (const std::string_view scheme : {"http://", "https://"})  // a proxy may terminate TLS for us
    if (origin.starts_with(scheme) && alike(origin.substr(scheme.size()), host)) return false;
  return true;
}

}  // namespace holdfast::tool
