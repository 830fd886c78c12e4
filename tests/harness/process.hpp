#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

/// Child processes for tests: this very program, started again (fork and exec, so that the child is
/// clean) with a hidden argument that names its role.
namespace harness {

/// A child's function: it gets the arguments and returns the exit code. Roles are globals:
///      const harness::role holder{"holder", [](const auto& args) { …; return 0; }};
struct role {
  using body = std::function<int(const std::vector<std::string>& args)>;
  role(std::string name, body run);
};

/// The main() of a test program that has roles: plays a role if asked to, otherwise runs the tests.
/// `before_tests` runs first, after GoogleTest has read its flags from the command line.
int run(int argc, char** argv, void (*before_tests)() = nullptr);

/// The processes that the first thread of `parent` started and that have not been reaped; empty
/// when `parent` is gone. Reads Linux's `/proc/<pid>/task/<tid>/children`, proc(5).
std::vector<pid_t> children_of(pid_t parent);

/// For a child: say() sends the parent a line; hear() waits for a line (empty when the parent is
/// gone).
void say(const std::string& line);
std::string hear();

/// For the parent. The destructor kills a child that still runs, and waits for its end. Start
/// children on the main thread: they die with the thread that started them.
class child {
 public:
  explicit child(const std::string& role, std::vector<std::string> args = {});
  ~child();
  child(child&& other) noexcept;
  child& operator=(child&& other) noexcept;

  pid_t pid() const { return pid_; }
  void tell(const std::string& line);
  /// The next line from the child; throws if the child ends, or sends nothing for a minute.
  std::string expect_line();

  /// Each returns when the kernel confirms the change (waitpid), not before.
  void kill();
  void stop();
  void resume();
  /// The exit code, or 128 + the signal that ended it.
  int wait();
  /// Whether the child has ended; does not wait.
  bool ended();

 private:
  void send(int signal) const;
  void wait_for_state(int options);
  void close_pipes() noexcept;

  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  int status_ = 0;
  std::string heard_;
};

}  // namespace harness
