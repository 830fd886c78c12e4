#include "tool/line_writer.hpp"

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <utility>

#include "tool/fd.hpp"

namespace holdfast::tool {

namespace {

constexpr std::chrono::seconds patience_at_the_end{1};

/// Signals must reach the threads that wait for them: the default action of most would end the
/// program.
class signals_held_back {
 public:
  signals_held_back() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  signals_held_back(const signals_held_back&) = delete;
  signals_held_back& operator=(const signals_held_back&) = delete;
  ~signals_held_back() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

struct line_writer::desk {
  enum class state { idle, given, writing };

  explicit desk(int to) : fd(to) {}
  bool is_idle() const noexcept { return at == state::idle; }

  const int fd;
  std::mutex mutex;
  std::condition_variable changed;
  state at = state::idle;
  std::string text;
  bool over = false;
};

line_writer::line_writer(int fd) : desk_(std::make_shared<desk>(fd)) {}

line_writer::~line_writer() {
  if (!thread_.joinable()) return;
  desk& d = *desk_;
  std::unique_lock guard{d.mutex};
  d.over = true;
  d.changed.notify_all();
  const bool ends = d.changed.wait_for(guard, patience_at_the_end, [&] { return d.is_idle(); });
  guard.unlock();
  ends ? thread_.join() : thread_.detach();
}

void line_writer::write(std::string text, std::chrono::milliseconds patience) {
  desk& d = *desk_;
  std::unique_lock guard{d.mutex};
  if (!has_thread_locked()) {
    (void)write_all(d.fd, text);
    return;
  }
  const auto idle = [&] { return d.is_idle(); };
  if (!d.changed.wait_for(guard, patience, idle)) return;
  d.text = std::move(text);
  d.at = desk::state::given;
  d.changed.notify_all();
  // On a busy machine the thread is late, which is no reader's fault.
  d.changed.wait(guard, [&] { return d.at != desk::state::given; });
  d.changed.wait_for(guard, patience, idle);
}

/// Where no thread can be started, no renewal could keep a lock either.
bool line_writer::has_thread_locked() {
  if (thread_.joinable()) return true;
  try {
    const signals_held_back none_for_it;
    thread_ = std::thread([mine = desk_] { serve(*mine); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void line_writer::serve(desk& d) {
  bool torn = false;  // the last text was written incompletely
  std::unique_lock guard{d.mutex};
  for (;;) {
    d.changed.wait(guard, [&] { return d.over || d.at == desk::state::given; });
    if (d.at != desk::state::given) return;
    const std::string text = (torn ? "\n" : "") + std::exchange(d.text, {});
    d.at = desk::state::writing;
    d.changed.notify_all();
    guard.unlock();
    const std::size_t written = write_out(d.fd, text);
    if (written > 0) torn = written < text.size();
    guard.lock();
    d.at = desk::state::idle;
    d.changed.notify_all();
  }
}

}  // namespace holdfast::tool
