#include "harness/server_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace harness {

namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& w : words) all.push_back(w.data());
  all.push_back(nullptr);
  return all;
}

const passwd* known(const std::string& user) {
  const passwd* const found = ::getpwnam(user.c_str());
  if (found == nullptr) throw std::runtime_error("there is no user " + user);
  return found;
}

std::vector<std::string> environment_with(std::vector<std::string> more) {
  for (char** e = environ; *e != nullptr; ++e) {
    if (!std::string_view(*e).starts_with("LD_PRELOAD=")) more.emplace_back(*e);
  }
  return more;
}

}  // namespace

std::string last_words(const std::string& log) {
  constexpr std::size_t much = 1'000;
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  const std::string all = text.str();
  const auto folder = std::filesystem::path(log).parent_path();
  return std::to_string(std::filesystem::space(folder).available >> 20) +
         " MB are free where it writes, and its log ends with: " +
         all.substr(all.size() - std::min(all.size(), much));
}

void give_to(const std::string& path, const std::string& user) {
  if (::geteuid() != 0) return;
  const auto* const to = known(user);
  if (::chown(path.c_str(), to->pw_uid, to->pw_gid) != 0) {
    throw std::runtime_error("cannot give " + path + " to " + user);
  }
}

// Nothing is allocated between fork and exec: this program may have threads.
void server_process::start(std::vector<std::string> words, const std::string& user,
                           const std::string& log, std::vector<std::string> more_environment,
                           int signal_if_we_die) {
  auto environment = environment_with(std::move(more_environment));
  const auto argv = pointers(words);
  const auto envp = pointers(environment);
  const passwd* const as = ::geteuid() == 0 && !user.empty() ? known(user) : nullptr;
  const uid_t uid = as != nullptr ? as->pw_uid : ::getuid();
  const gid_t gid = as != nullptr ? as->pw_gid : ::getgid();
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int nowhere = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    const bool changed =
        as == nullptr || (::setgroups(0, nullptr) == 0 && ::setgid(gid) == 0 && ::setuid(uid) == 0);
    ::prctl(PR_SET_PDEATHSIG, signal_if_we_die);  // after the change of user, which clears it
    if (!changed || ::getppid() != parent || ::chdir("/") != 0) ::_exit(126);
    ::dup2(nowhere, 0);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(out);
  ::close(nowhere);
}

void server_process::run(std::vector<std::string> words, const std::string& user,
                         const std::string& log) {
  const std::string what = words.front();
  server_process once;
  once.start(std::move(words), user, log);
  int status = 0;
  ::waitpid(once.pid_, &status, 0);
  once.pid_ = -1;
  if (status == 0) return;
  throw std::runtime_error(what + " failed; is it installed? " + last_words(log));
}

bool server_process::runs() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

void server_process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void server_process::end(int number) {
  if (pid_ < 0) return;
  ::kill(pid_, number);
  ::kill(pid_, SIGCONT);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace harness
