#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/program.hpp"
#include "harness/temp_dir.hpp"
#include "harness/write_blocker.hpp"
#include "paths.hpp"

namespace tool_test {

using harness::outcome;
using harness::program;
using harness::reader;
using harness::run_to_end;
using harness::surroundings;
using harness::write_blocker;

using words = std::vector<std::string>;

/// The program holdfast over a SQLite store of this test's own.
class holdfast_tool : public testing::Test {
 protected:
  holdfast_tool()
      : store("sqlite:" + folder.file("locks.db")),
        around{{"HOLDFAST_STORE=" + store, "XDG_RUNTIME_DIR=" + folder.path().string(), "NO_COLOR",
                "CLICOLOR_FORCE", "TERM=xterm", "NOTIFY_SOCKET", "WATCHDOG_USEC", "HOLDFAST_LOCK",
                "HOLDFAST_OWNER", "HOLDFAST_FENCE", "HOLDFAST_TOKEN"},
               {},
               false,
               false,
               false,
               {}} {
    std::ofstream(folder.file("locks.db"));  // as if a program had used it before
  }

  static words command(words arguments) {
    arguments.insert(arguments.begin(), HOLDFAST_TOOL);
    return arguments;
  }

  static words with_closed_stdout(const words& command) {
    words all{"sh", "-c", "exec \"$@\" >&-", "sh"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }

  outcome tool(const words& arguments, std::string_view input = {}) const {
    return run_to_end(command(arguments), around, input);
  }

  /// `run LOCK OPTIONS -- sh -c SCRIPT`
  static words run_sh(const std::string& lock, words options, const std::string& script) {
    words all{"run", lock};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "sh", "-c", script});
    return all;
  }

  /// Another process that holds it; the constructor returns when it is held.
  class holder {
   public:
    holder(const holdfast_tool& test, words options) : holder(test.around, std::move(options)) {}
    holder(const surroundings& around, words options)
        : process(command(with_hold(std::move(options))), around),
          facts(nlohmann::json::parse(process.out.line())) {}
    int let_go() {
      process.close_stdin();
      return process.wait();
    }
    program process;
    nlohmann::json facts;

   private:
    static words with_hold(words options) {
      options.insert(options.begin(), {"hold", "--json"});
      return options;
    }
  };

  nlohmann::json shown(const std::string& lock) const {
    return nlohmann::json::parse(tool({"show", "--json", lock}).out);
  }

  /// Waits until the store shows a waiter.
  void wait_for_waiter(const std::string& lock) const {
    harness::eventually("somebody waits for " + lock,
                        [&] { return !shown(lock)["waiters"].empty(); });
  }

  /// The first JSON event of that kind on stderr.
  static nlohmann::json wait_for(program& p, const std::string& event) {
    for (;;) {
      auto line = nlohmann::json::parse(p.err.line());
      if (line["event"] == event) return line;
    }
  }

  harness::temp_dir folder;
  std::string store;
  surroundings around;
};

/// This program, in one of its roles, as a command line.
words role(const std::string& name, words arguments = {});

}  // namespace tool_test
