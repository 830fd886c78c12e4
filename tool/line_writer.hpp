#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace holdfast::tool {

/// Writes to a descriptor on a thread of its own. Only this never blocks the caller, whatever the
/// descriptor is: a pipe of another user, a socket, a terminal after Ctrl-S, a file on a server
/// that is away. Thread-safe.
class line_writer {
 public:
  /// The first text starts the thread, which takes no signals.
  explicit line_writer(int fd);
  line_writer(const line_writer&) = delete;
  line_writer& operator=(const line_writer&) = delete;
  /// Gives the present write a second. A reader that takes nothing blocks only the thread.
  ~line_writer();

  /// Waits `patience` for the present write, and drops the text if that is not enough. Then waits
  /// as long for the text itself; if that takes longer, the text is written when its reader
  /// continues.
  void write(std::string text, std::chrono::milliseconds patience);

 private:
  struct desk;
  bool has_thread_locked();
  static void serve(desk& d);

  const std::shared_ptr<desk> desk_;  ///< shared with the thread, which may outlive this object
  std::thread thread_;
};

}  // namespace holdfast::tool
