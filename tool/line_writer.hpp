#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace holdfast::tool {

/// Writes to a descriptor on a thread of its own. No other way waits for nobody whatever the
/// descriptor is: a pipe of another user, a socket, a terminal after Ctrl-S, a file on a server
/// that is away. Thread-safe.
class line_writer {
 public:
  /// The thread is started with the first text. It takes no signal.
  explicit line_writer(int fd);
  line_writer(const line_writer&) = delete;
  line_writer& operator=(const line_writer&) = delete;
  /// Gives what is being written a second. A reader that takes nothing keeps the thread, and nobody
  /// else.
  ~line_writer();

  /// Waits `patience` for what is being written, and drops the text if that is not enough. Then
  /// waits as long for the text itself; one that takes longer is written when its reader goes on.
  void write(std::string text, std::chrono::milliseconds patience);

 private:
  struct desk;
  bool has_thread_locked();
  static void serve(desk& d);

  const std::shared_ptr<desk> desk_;  ///< also the thread's: it may outlive this object
  std::thread thread_;
};

}  // namespace holdfast::tool
