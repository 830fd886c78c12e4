#include "tool/tmux.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

#include "harness/eventually.hpp"

namespace tool_test {

namespace {

// Only `-D` starts a server: one that a client starts is nobody's child, and would outlive the
// test.
std::vector<std::string> tmux_words(const harness::temp_dir& folder,
                                    const std::vector<std::string>& more) {
  std::vector<std::string> all{"tmux", "-S", folder.file("socket"), "-f", "/dev/null"};
  if (more.front() != "-D") all.emplace_back("-N");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

harness::surroundings of_tmux(harness::surroundings around) {
  around.environment.insert(around.environment.end(), {"TMUX", "LC_ALL=C.UTF-8"});
  return around;
}

}  // namespace

tmux::tmux(const harness::surroundings& around, const std::string& command, int columns, int rows)
    : around_(of_tmux(around)), server_(tmux_words(folder_, {"-D"}), around_) {
  harness::eventually("tmux answers", [&] {
    return harness::run_to_end(tmux_words(folder_, {"new-session",
                                                    "-d",
                                                    "-x",
                                                    std::to_string(columns),
                                                    "-y",
                                                    std::to_string(rows),
                                                    command,
                                                    ";",
                                                    "set",
                                                    "-g",
                                                    "remain-on-exit",
                                                    "on",
                                                    ";",
                                                    "set",
                                                    "-g",
                                                    "status",
                                                    "off",
                                                    ";",
                                                    "set",
                                                    "-sg",
                                                    "escape-time",
                                                    "0"}),
                               around_)
               .code == 0;
  });
}

// The program in the window gets HUP, as when a window is closed.
tmux::~tmux() { server_.signal(SIGTERM); }

std::string tmux::ask(std::vector<std::string> words) const {
  const auto answer = harness::run_to_end(tmux_words(folder_, words), around_);
  if (answer.code != 0) throw std::runtime_error("tmux " + words.front() + ": " + answer.err);
  return answer.out;
}

void tmux::press(const std::vector<std::string>& keys) const {
  std::vector<std::string> words{"send-keys"};
  words.insert(words.end(), keys.begin(), keys.end());
  ask(words);
}

void tmux::type(const std::string& text) const { ask({"send-keys", "-l", text}); }

void tmux::resize(int columns, int rows) const {
  ask({"resize-window", "-x", std::to_string(columns), "-y", std::to_string(rows)});
}

std::string tmux::screen() const { return ask({"capture-pane", "-p"}); }

void tmux::shows(const std::string& text) const {
  std::string last;
  SCOPED_TRACE("waiting for \"" + text + '"');
  try {
    harness::eventually("on the screen: " + text, [&] {
      last = screen();
      return last.find(text) != std::string::npos;
    });
  } catch (const std::runtime_error&) {
    ADD_FAILURE() << "the screen is:\n" << last;
    throw;
  }
}

void tmux::hides(const std::string& text) const {
  harness::eventually("not on the screen: " + text,
                      [&] { return screen().find(text) == std::string::npos; });
}

std::string tmux::state(const std::string& format) const {
  return ask({"display-message", "-p", format});
}

}  // namespace tool_test
