#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace harness {

/// A server's process, which ends with this program. Servers that refuse to run as root run as
/// `user` if we are root; without a user, as we are.
class server_process {
 public:
  server_process() = default;
  ~server_process() { end(9); }
  server_process(const server_process&) = delete;

  /// What it says goes to the file `log`.
  void start(std::vector<std::string> words, const std::string& user, const std::string& log,
             std::vector<std::string> more_environment = {}, int signal_if_we_die = 3);
  /// Runs it to its end; throws if that is not 0.
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

/// Why it may not have started: the end of its log, which goes with the folder of the test, and the
/// room that there is.
std::string last_words(const std::string& log);

/// Gives a file or folder to that user, if we are root.
void give_to(const std::string& path, const std::string& user);

}  // namespace harness
