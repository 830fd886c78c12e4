#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

/// Child processes for tests: this very program, started again (fork and exec, so that the child
/// is clean) with a hidden argument that names the role it plays.
namespace harness {

/// What a child does: its arguments come in, its exit code goes out. Roles are made as globals:
///     const harness::role holder{"holder", [](const auto& args) { …; return 0; }};
struct role {
  using body = std::function<int(const std::vector<std::string>& args)>;
  role(std::string name, body run);
};

/// The main() of a test program that has roles: plays one if asked to, else runs the tests, and
/// before them what is to know the command line (GoogleTest's flags are read then).
int run(int argc, char** argv, void (*before_tests)() = nullptr);

/// The processes that the first thread of `parent` started and that have not been reaped; none when
/// `parent` is gone. Linux's `/proc/<pid>/task/<tid>/children`, proc(5).
std::vector<pid_t> children_of(pid_t parent);

/// For a child: tells the parent a line; and waits for a line (empty when the parent is gone).
void say(const std::string& line);
std::string hear();

/// For the parent. The destructor kills what is left, and waits until it is gone.
/// Start children on the main thread: they die with the thread that made them.
class child {
 public:
  explicit child(const std::string& role, std::vector<std::string> args = {});
  ~child();
  child(child&& other) noexcept;
  child& operator=(child&& other) noexcept;

  pid_t pid() const { return pid_; }
  void tell(const std::string& line);
  /// The next line that the child says; throws if it ends, or says nothing for a minute.
  std::string expect_line();

  /// Each returns when the kernel says that it is so (waitpid), not before.
  void kill();
  void stop();
  void resume();
  /// The exit code, or 128 + the signal that ended it.
  int wait();
  /// Whether it has ended; does not wait.
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
