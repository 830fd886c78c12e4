#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

/// Programs as a user starts them, with pipes or a terminal; tests wait for their output.
namespace harness {

/// The reading side of a pipe or a terminal. Throws when nothing arrives for a minute: such a test
/// hangs, it is not just slow.
class reader {
 public:
  reader() = default;
  explicit reader(int fd) : fd_(fd) {}
  reader(reader&& other) noexcept;
  reader& operator=(reader&& other) noexcept;
  ~reader();

  std::string line();
  /// Reads until the last writer has closed its side.
  std::string rest();
  /// Reads up to and including `text`.
  std::string until(std::string_view text);

 private:
  bool more();
  std::string take(std::size_t n);
  int fd_ = -1;
  std::string heard_;
};

struct surroundings {
  /// NAME=value, over the test's own environment; NAME alone removes it.
  std::vector<std::string> environment;
  std::vector<int> ignored_signals;
  bool on_terminal = false;   ///< stdin, stdout, stderr are a terminal of its own
  bool null_stdin = false;    ///< /dev/null, as under cron
  bool unprivileged = false;  ///< as the user nobody, if the test runs as root
  std::string folder;
};

class program {
 public:
  program(const std::vector<std::string>& argv, const surroundings& around);
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  /// Kills the program if it still runs, and waits for its end.
  ~program();

  pid_t pid() const { return pid_; }
  void tell(std::string_view text) const;
  void close_stdin();
  /// Sends a signal to the process itself.
  void signal(int number) const;
  /// Returns when the process is really stopped, or has ended.
  void stop() const;
  /// The same for a process that stops itself.
  void await_stop() const;

  reader out;  ///< on a terminal: everything that appears there
  reader err;

  /// The exit code, or 128 + the signal that ended it.
  int wait();

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  bool ended_ = false;
  int code_ = -1;
};

struct outcome {
  int code = 0;
  std::string out;
  std::string err;
};

/// Runs the program to its end with `input`, or nothing, on stdin.
outcome run_to_end(const std::vector<std::string>& argv, const surroundings& around,
                   std::string_view input = {});

}  // namespace harness
