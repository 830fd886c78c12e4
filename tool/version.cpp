#include <holdfast/error.hpp>

#include "tool/commands.hpp"
#include "tool/json.hpp"

namespace holdfast::tool {

namespace {

/// Tries the library itself, so that the result cannot differ from open().
bool is_built_in(const std::string& url) {
  try {
    open(url);
  } catch (const error& e) {
    return e.reason() != errc::unsupported;
  }
  return true;
}

std::vector<std::string> stores() {
  std::vector<std::string> found{"memory"};
  // None of these URLs is complete, so no server is contacted.
  for (const std::string store :
       {"sqlite", "redis", "postgres", "mariadb", "zookeeper", "etcd", "memcached"})
    if (is_built_in(store + ":")) found.push_back(store);
  return found;
}

}  // namespace

int version(const common_options& common, const version_options&, log&) {
  const auto built_in = stores();
  if (common.json) {
    print(version_json(HOLDFAST_VERSION, built_in));
    return exit_code::ok;
  }
  std::string text = "holdfast " HOLDFAST_VERSION "\nstores:";
  for (const auto& s : built_in) text += ' ' + s;
  print(text + '\n');
  return exit_code::ok;
}

}  // namespace holdfast::tool
