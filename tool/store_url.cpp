#include "tool/store_url.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace holdfast::tool {

std::string_view password_in(std::string_view url) noexcept {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  const auto begin = scheme + 3;
  const auto authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  // The last @: a password may hold one.
  const auto at = authority.rfind('@');
  if (at == std::string_view::npos) return {};
  const auto colon = authority.substr(0, at).find(':');
  if (colon == std::string_view::npos) return {};
  return authority.substr(colon + 1, at - colon - 1);
}

std::string without_password(std::string_view url) {
  const auto password = password_in(url);
  std::string out{url};
  if (password.empty()) return out;
  return out.replace(static_cast<std::size_t>(password.data() - url.data()), password.size(),
                     "***");
}

std::string url_for_others(std::string_view url) {
  constexpr std::string_view scheme = "sqlite:";
  if (!url.starts_with(scheme) || url.substr(scheme.size()).starts_with('/'))
    return without_password(url);
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  return std::string(scheme) + (folder / url.substr(scheme.size())).string();
}

bool blank_passwords(std::span<char* const> arguments) noexcept {
  bool found = false;
  for (char* const argument : arguments) {
    if (std::string_view(argument) == "--") break;
    const auto password = password_in(argument);
    if (password.empty()) continue;
    std::fill_n(argument + (password.data() - argument), password.size(), '*');
    found = true;
  }
  return found;
}

}  // namespace holdfast::tool
