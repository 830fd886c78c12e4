#pragma once

#include <string>
#include <vector>

#include "harness/program.hpp"
#include "harness/temp_dir.hpp"

namespace tool_test {

/// A terminal as people have one: a tmux server of this test's own with one window.
class tmux {
 public:
  /// Runs `command`; the window stays when it ends.
  tmux(const harness::surroundings& around, const std::string& command, int columns = 100,
       int rows = 24);
  ~tmux();
  tmux(const tmux&) = delete;
  tmux& operator=(const tmux&) = delete;

  /// Keys by tmux's names ("Enter", "Up", "C-c"), or one letter each.
  void press(const std::vector<std::string>& keys) const;
  void type(const std::string& text) const;
  void resize(int columns, int rows) const;

  std::string screen() const;
  /// Waits until the text is on the screen, or is not.
  void shows(const std::string& text) const;
  void hides(const std::string& text) const;
  /// Of tmux's variables: "#{alternate_on}#{cursor_flag}"
  std::string state(const std::string& format) const;

 private:
  std::string ask(std::vector<std::string> words) const;

  harness::surroundings around_;
  harness::temp_dir folder_;
  harness::program server_;
};

}  // namespace tool_test
