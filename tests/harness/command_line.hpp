#pragma once

#include "paths.hpp"
#ifdef HOLDFAST_TOOL  // a lane may be built without the program
#include <set>
#include <string>
#include <vector>

#include "harness/program.hpp"

namespace harness {

/// The program holdfast, with a store and without what a program around it would tell it.
class command_line {
 public:
  explicit command_line(const std::string& url = {}) { use(url); }
  /// Empty: none.
  void use(const std::string& url) {
    around_.environment[0] = url.empty() ? "HOLDFAST_STORE" : "HOLDFAST_STORE=" + url;
  }
  outcome operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), HOLDFAST_TOOL);
    return run_to_end(arguments, around_);
  }

 private:
  surroundings around_{{"HOLDFAST_STORE", "HOLDFAST_LOCK", "HOLDFAST_OWNER", "HOLDFAST_FENCE",
                        "HOLDFAST_TOKEN", "NOTIFY_SOCKET"},
                       {},
                       false,
                       false,
                       false,
                       {}};
};

/// The one holder of `name` is another program, or a session of which the store says little: the
/// program shows nothing of it but an owner, a host, a program, a reason and what is `known`, as it
/// is called in JSON.
void expect_nothing_invented(const command_line& tool, const std::string& name,
                             const std::set<std::string>& known = {});

}  // namespace harness
#endif
