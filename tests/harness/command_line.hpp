#pragma once

#include "paths.hpp"
#ifdef HOLDFAST_TOOL  // a lane may be built without the program
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/program.hpp"

namespace harness {

/// The program holdfast, with a store and without the environment that a surrounding program would
/// set.
class command_line {
 public:
  explicit command_line(const std::string& url = {}) { use(url); }
  /// Sets the store's URL; empty: none.
  void use(const std::string& url) {
    around_.environment[0] = url.empty() ? "HOLDFAST_STORE" : "HOLDFAST_STORE=" + url;
  }
  outcome operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), HOLDFAST_TOOL);
    return run_to_end(arguments, around_);
  }
  std::unique_ptr<program> start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), HOLDFAST_TOOL);
    return std::make_unique<program>(arguments, around_);
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

/// The one holder of `name` is another program, or a session about which the store records little:
/// the program shows nothing of it but an owner, a host, a program, a reason and the JSON fields in
/// `known`.
void expect_nothing_invented(const command_line& tool, const std::string& name,
                             const std::set<std::string>& known = {});

/// The command that `run` starts after a lock was handed over runs for as long as it likes.
void expect_the_command_outlives_a_hand_over(const std::string& url);

}  // namespace harness
#endif
