#include <execinfo.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "simulation/run.hpp"

namespace simulation {

namespace {

// Seconds of processor time, so that a busy machine stops no run; a run takes a fraction of a
// second.
constexpr unsigned endless = 20;
// Seconds of real time in which a run that is not blocked computes. The bound of a test is longer.
constexpr unsigned blocked = 3 * endless;

bool shows_stack = false;

// Prints where a run that does not end loops.
void end_by(int signal) {
  void* calls[32];
  if (shows_stack) backtrace_symbols_fd(calls, backtrace(calls, 32), STDERR_FILENO);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

long processor_milliseconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) { return t.tv_sec * 1000 + t.tv_usec / 1000; };
  return of(used.ru_utime) + of(used.ru_stime);
}

// A run that computes is not blocked, however little of a busy machine it gets.
void end_if_blocked(int signal) {
  static long used_before = 0;
  const long used = processor_milliseconds();
  if (used == used_before) end_by(signal);
  used_before = used;
  ::alarm(blocked);
}

void limit_time() {
  ::signal(SIGPROF, end_by);
  ::signal(SIGALRM, end_if_blocked);
  const itimerval most{.it_interval = {}, .it_value = {.tv_sec = endless, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &most, nullptr);
  ::alarm(blocked);
}

void write_all(int to, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const auto n = ::write(to, text.data() + done, text.size() - done);
    if (n <= 0) _exit(3);
    done += static_cast<std::size_t>(n);
  }
}

std::string read_all(int from) {
  std::string text;
  char part[65536];
  for (;;) {
    const auto n = ::read(from, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(part, static_cast<std::size_t>(n));
  }
}

std::string take_line(std::string& text) {
  const auto end = text.find('\n');
  std::string line = text.substr(0, end);
  text.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

std::uint64_t take_number(std::string& text) {
  return std::strtoull(take_line(text).c_str(), nullptr, 10);
}

meetings_of_a_run read_meetings(const std::string& line) {
  meetings_of_a_run met;
  for (std::size_t at = 0; at < line.size();) {
    const auto colon = line.find(':', at);
    const auto end = line.find(';', colon);
    met[line.substr(at, colon - at)] =
        static_cast<std::uint32_t>(std::strtoul(line.c_str() + colon + 1, nullptr, 10));
    at = end + 1;
  }
  return met;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = '|';
  }
  return text;
}

std::string as_text(const outcome& o) {
  std::string text = std::to_string(o.commands) + '\n' + std::to_string(o.grants) + '\n' +
                     std::to_string(o.switches) + '\n' + std::to_string(o.simulated) + '\n';
  for (const auto& [operation, troubles] : o.met) {
    text += operation + ':' + std::to_string(troubles) + ';';
  }
  text += '\n';
  text += o.found ? one_line(o.found->rule) + '\n' + one_line(o.found->what) + '\n' : "\n\n";
  return text + o.trace;
}

}  // namespace

run_beside::run_beside(const plan& p, bool traced) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  child_ = ::fork();
  if (child_ < 0) std::abort();
  result_ = ends[0];
  if (child_ > 0) {
    ::close(ends[1]);
    return;
  }
  ::close(ends[0]);
  shows_stack = traced;
  limit_time();
  write_all(ends[1], as_text(run(p, traced)));
  _exit(0);
}

run_beside::run_beside(run_beside&& other) noexcept
    : child_(std::exchange(other.child_, -1)), result_(std::exchange(other.result_, -1)) {}

run_beside& run_beside::operator=(run_beside&& other) noexcept {
  std::swap(child_, other.child_);
  std::swap(result_, other.result_);
  return *this;
}

run_beside::~run_beside() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  end();
}

int run_beside::end() {
  int status = 0;
  ::close(std::exchange(result_, -1));
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  return status;
}

outcome run_beside::wait() {
  std::string text = read_all(result_);
  const int status = end();
  outcome o;
  if (status != 0 || text.empty()) {
    const bool killed = WIFSIGNALED(status);
    const int signal = killed ? WTERMSIG(status) : 0;
    o.found = judge::verdict{
        signal == SIGALRM || signal == SIGPROF ? "a run ends" : "the program does not crash",
        killed ? std::string("signal ") + strsignal(signal)
               : "exit code " + std::to_string(WEXITSTATUS(status))};
    return o;
  }
  o.commands = take_number(text);
  o.grants = take_number(text);
  o.switches = take_number(text);
  o.simulated = static_cast<nanos>(take_number(text));
  o.met = read_meetings(take_line(text));
  auto rule = take_line(text);
  auto what = take_line(text);
  if (!rule.empty()) o.found = judge::verdict{std::move(rule), std::move(what)};
  o.trace = std::move(text);
  return o;
}

}  // namespace simulation
