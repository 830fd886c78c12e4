#include "harness/caller.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace harness {

namespace {

// Without this variable etcd does not start on some processors.
constexpr std::string_view kept = "ETCD_UNSUPPORTED_ARCH";

constexpr std::array<std::string_view, 8> families{"PG",    "MYSQL_",   "MARIADB_", "REDISCLI_",
                                                   "ETCD_", "ETCDCTL_", "ZOO",      "SSL_CERT_"};
constexpr std::array<std::string_view, 12> names{
    "http_proxy", "https_proxy", "HTTP_PROXY",     "HTTPS_PROXY",   "grpc_proxy",     "GRPC_PROXY",
    "all_proxy",  "ALL_PROXY",   "HOLDFAST_STORE", "HOLDFAST_LOCK", "HOLDFAST_OWNER", "CLASSPATH"};

bool is_the_callers(std::string_view name) {
  return name != kept &&
         (std::ranges::any_of(families, [&](auto family) { return name.starts_with(family); }) ||
          std::ranges::find(names, name) != names.end());
}

}  // namespace

void forget_the_callers_settings() {
  if (std::getenv("HOLDFAST_TEST_ROLE") != nullptr) return;
  ::umask(022);
  std::vector<std::string> found;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view name = std::string_view(*at).substr(0, std::string_view(*at).find('='));
    if (is_the_callers(name)) found.emplace_back(name);
  }
  for (const auto& name : found) ::unsetenv(name.c_str());
  ::setenv("HOLDFAST_TEST_ROLE", "1", 1);
}

}  // namespace harness
