#include "harness/stale_holder.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <holdfast/holdfast.hpp>
#include <stdexcept>

namespace harness {

namespace {

using namespace std::chrono_literals;

constexpr char failed = '?';

void say(int fd, char what) {
  if (::write(fd, &what, 1) != 1) ::_exit(2);
}

char hear(int fd) {
  char what = failed;
  return ::read(fd, &what, 1) == 1 ? what : failed;
}

[[noreturn]] void hold_and_write(const std::string& url, int from, int to,
                                 const std::function<bool(std::uint64_t)>& write) try {
  auto s = holdfast::open(url);
  holdfast::lock_options o;
  o.lease = 300ms;
  holdfast::mutex m{s, "guarded", o};
  const auto held = m.acquire();
  say(to, 'h');
  (void)hear(from);
  say(to, write(held.fence()) ? 'y' : 'n');
  ::_exit(0);
} catch (...) {
  ::_exit(1);
}

}  // namespace

verdicts write_after_a_pause(const std::string& url,
                             const std::function<bool(std::uint64_t)>& write) {
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) hold_and_write(url, there[0], back[1], write);
  ::close(back[1]);
  if (hear(back[0]) != 'h') throw std::runtime_error("the child did not get the lock");
  ::kill(child, SIGSTOP);
  verdicts v;
  {
    auto s = holdfast::open(url);
    holdfast::mutex m{s, "guarded"};
    const auto held = m.acquire();
    v.successor = write(held.fence());
    ::kill(child, SIGCONT);
    say(there[1], 'g');
    const char answer = hear(back[0]);
    ::waitpid(child, nullptr, 0);
    if (answer == failed) throw std::runtime_error("the child could not write");
    v.stale = answer == 'y';
  }
  for (const int fd : {there[0], there[1], back[0]}) ::close(fd);
  return v;
}

}  // namespace harness
