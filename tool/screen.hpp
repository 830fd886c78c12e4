#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/fd.hpp"

namespace holdfast::tool {

struct screen_size {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// A terminal that is drawn as a whole, in its alternate screen. The former content comes back when
/// this object is destroyed, when restore() is called, and when the program dies of a signal that
/// is not KILL. One object at a time.
class screen {
 public:
  /// Takes the terminal of stdin and stdout. Throws std::system_error if they are no terminal.
  screen();
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;
  ~screen() { restore(); }

  static screen_size size() noexcept;
  /// Draws lines from the top, which may have escape sequences of their own; the rest is blank.
  /// False if the terminal is gone.
  bool draw(std::span<const std::string> lines) const;
  /// Restores the shell's state. A second call does nothing.
  void restore() noexcept;
  /// Takes the terminal again, in whatever state a shell's `fg` left it.
  void take() const;
  /// Gives the terminal back to the shell, stops this process, and takes it again when the process
  /// continues.
  void suspend();
};

/// A key that a person typed.
struct key {
  enum class code {
    text,
    enter,
    escape,
    backspace,
    up,
    down,
    page_up,
    page_down,
    home,
    end,
    other
  };
  code what = code::other;
  std::string text{};  ///< of `text`: one letter, in UTF-8; control characters such as ^C unchanged
};

/// The keys in the bytes of one read. An unknown sequence is `other`.
std::vector<key> keys_of(std::string_view bytes);

}  // namespace holdfast::tool
