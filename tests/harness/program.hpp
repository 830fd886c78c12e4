#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

/// Programs as a user starts them: with pipes or a terminal, waited for by what they say.
namespace harness {

/// The reading side of a pipe or a terminal. Throws when nothing comes for a minute: that is a test
/// that hangs, never one that is slow.
class reader {
 public:
  reader() = default;
  explicit reader(int fd) : fd_(fd) {}
  reader(reader&& other) noexcept;
  reader& operator=(reader&& other) noexcept;
  ~reader();

  std::string line();
  /// Everything until the last writer has closed it.
  std::string rest();
  /// Everything up to and with `text`.
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
  bool null_stdin = false;    ///< /dev/null, as cron gives it
  bool unprivileged = false;  ///< as nobody, if we are root
  std::string folder;
};

class program {
 public:
  program(const std::vector<std::string>& argv, const surroundings& around);
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  /// Kills what is left of it, and waits.
  ~program();

  pid_t pid() const { return pid_; }
  void tell(std::string_view text) const;
  void close_stdin();
  /// Sends a signal to the process itself.
  void signal(int number) const;
  /// Returns when it is really stopped, or has ended.
  void stop() const;
  /// The same for one that stops itself.
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

/// Runs it to its end with nothing, or `input`, on stdin.
outcome run_to_end(const std::vector<std::string>& argv, const surroundings& around,
                   std::string_view input = {});

}  // namespace harness
