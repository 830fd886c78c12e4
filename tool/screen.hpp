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

/// A terminal that is drawn on as a whole, in its alternate screen: what was there before comes
/// back when this is destroyed, when restore() is called, and when the program dies of a signal
/// that is not KILL. One at a time.
class screen {
 public:
  /// Of stdin and stdout. Throws std::system_error if they are no terminal.
  screen();
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;
  ~screen() { restore(); }

  static screen_size size() noexcept;
  /// Lines from the top, which may have escape sequences of their own; the rest is blank. False if
  /// the terminal is gone.
  bool draw(std::span<const std::string> lines) const;
  /// As the shell had it. Once more: nothing.
  void restore() noexcept;
  /// As a shell's `fg` may have left it: ours again.
  void take() const;
  /// Gives the terminal back to the shell, stops this process, and takes it again when it goes on.
  void suspend();
};

/// What a person typed.
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
  std::string text{};  ///< of `text`: one letter, in UTF-8; ^C and its like as they come
};

/// Bytes of a terminal, as many as one read brought. A sequence that nobody knows is `other`.
std::vector<key> keys_of(std::string_view bytes);

}  // namespace holdfast::tool
