#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace harness {

/// A server's process, which ends with this program. Servers that refuse to run as root run as
/// `user` if the test is root; without a user, as the test's user.
class server_process {
 public:
  server_process() = default;
  ~server_process() { end(9); }
  server_process(const server_process&) = delete;

  /// The output goes to the file `log`.
  void start(std::vector<std::string> words, const std::string& user, const std::string& log,
             std::vector<std::string> more_environment = {}, int signal_if_we_die = 3);
  /// Runs a command to its end; throws if its exit code is not 0.
  static void run(std::vector<std::string> words, const std::string& user, const std::string& log);

  bool runs();
  void signal(int number) const;
  /// Sends the signal and waits for the end.
  void end(int number);
  void stop() const { signal(19); }
  void resume() const { signal(18); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// Why a server may have failed to start: the end of its log, which is deleted with the test's
/// folder, and the free disk space.
std::string last_words(const std::string& log);

/// Gives a file or folder to that user, if the test is root.
void give_to(const std::string& path, const std::string& user);

}  // namespace harness
