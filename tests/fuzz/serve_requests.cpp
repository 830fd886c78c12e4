#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "tool/serve/host_check.hpp"
#include "tool/serve/unlock_request.hpp"
#include "tool/serve/url_query.hpp"

// The parts of a request to holdfast serve that Beast does not parse: the query, Host and Origin, a
// line each, and then the body.
namespace {

namespace tool = holdfast::tool;

std::string percent_coded(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

/// The owner of a name below .elsewhere may let the name point here.
void try_host(const std::string& host) {
  const std::vector<std::string> names{"locks.example", ""};
  (void)tool::is_own_host(host, names);
  fuzz::require(!tool::is_own_host(host + ".elsewhere", names));
  fuzz::require(!tool::is_own_host("elsewhere." + host, {}));
  const auto port = tool::port_of(host);
  const std::string before = tool::host_of(host);
  fuzz::require(!port || before.size() < host.size());
  if (tool::is_loopback(host) && port) fuzz::require(before.empty() || tool::is_own_host(host, {}));
}

void try_origin(std::string_view origin, const std::string& host) {
  const bool foreign = tool::is_foreign("", origin, host);
  fuzz::require(foreign || origin.empty() || origin.size() > host.size());
  fuzz::require(host.empty() || !tool::is_foreign("", "http://" + host, host));
  fuzz::require(tool::is_foreign("", "http://" + host + ".elsewhere", host));
  fuzz::require(tool::is_foreign("cross-site", origin, host));
}

void try_query(std::string_view query) {
  for (const std::string_view key : {"store", "lock", "max_age", ""}) {
    const auto value = tool::query_value(query, key);
    fuzz::require(!value || value->size() < query.size());
    if (value) (void)tool::seconds_in(*value);
  }
  const std::string named = "x=" + percent_coded("1") + "&lock=" + percent_coded(query) + "&y";
  fuzz::require(tool::query_value(named, "lock") == query);
  const auto seconds = tool::seconds_in(query);
  fuzz::require(!seconds || *seconds >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto rest = fuzz::text_of(data, size);
  try_query(fuzz::take_until(rest, '\n'));
  const std::string host(fuzz::take_until(rest, '\n'));
  try_host(host);
  try_origin(fuzz::take_until(rest, '\n'), host);
  const auto unlock = tool::unlock_request_of(std::string(rest));
  fuzz::require(!unlock || !unlock->lock.empty());
  return 0;
}
