#include "interop/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <holdfast/holdfast.hpp>
#include <sstream>

#include "harness/process.hpp"
#include "paths.hpp"

namespace interop_test {

namespace {

using namespace std::chrono_literals;

/// As in peers/party.py: longer than any machine keeps one waiting for the processor.
constexpr auto working = 20s;
constexpr auto dying = 2s;
/// Between two turns: enough for the other tests of the machine.
constexpr auto pause = 8ms;

/// As in peers/party.py.
class guard {
 public:
  explicit guard(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {}
  ~guard() { ::close(fd_); }
  guard(const guard&) = delete;
  bool enter(bool reads) const { return ::flock(fd_, (reads ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0; }
  void leave() const { ::flock(fd_, LOCK_UN); }

 private:
  const int fd_;
};

// A lock on one server, or on several.
template <class Use>
void with_lock_on(const std::vector<std::string>& urls, bool reads, const std::string& name,
                  std::chrono::milliseconds lease, Use use) {
  std::vector<holdfast::session> sessions;
  for (const auto& url : urls) sessions.push_back(holdfast::open(url));
  if (reads) {
    holdfast::shared_mutex lock(sessions.front(), name, {{.lease = lease}, {}});
    return use(lock);
  }
  if (sessions.size() == 1) {
    holdfast::mutex lock(sessions.front(), name, {.lease = lease});
    return use(lock);
  }
  holdfast::redlock lock(sessions, name, {.lease = lease, .node_timeout = 20s});
  use(lock);
}

template <class Lock>
auto take(Lock& lock, bool) {
  return lock.acquire();
}
holdfast::lease take(holdfast::shared_mutex& lock, bool reads) {
  return reads ? lock.acquire_shared() : lock.acquire();
}

// Takes it and never gives it back.
const harness::role holder{"interop-holder", [](const std::vector<std::string>& args) {
                             const bool reads = args.at(1) == "reads";
                             with_lock_on({args.begin() + 2, args.end()}, reads, args.at(0), dying,
                                          [&](auto& lock) {
                                            const auto held = take(lock, reads);
                                            harness::say("holding");
                                            (void)harness::hear();
                                          });
                             return 0;
                           }};

void work(const party& who, const std::string& name, const std::string& guard_path, shift& until,
          tally& mine) {
  const guard alone(guard_path);
  bool reads = false;
  with_lock_on(who.urls, who.reads, name, working, [&](auto& lock) {
    while (!until.over_after(pause)) {
      reads = who.reads && !reads;
      const auto held = take(lock, reads);
      if (alone.enter(reads))
        alone.leave();
      else
        ++mine.violations;
      ++mine.sections;
    }
  });
}

}  // namespace

std::string npm_packages() { return HOLDFAST_SOURCE_DIR "/build/npm/node_modules"; }

arena::arena(party who, const std::string& folder)
    : who_(std::move(who)),
      name_("orders-of-" + who_.title),
      guard_(folder + "/" + who_.title + ".guard") {}

arena::~arena() {
  ours_.end();
  for (auto& w : workers_) {
    if (w.joinable()) w.join();
  }
}

void arena::begin() {
  for (int i = 0; i < 2; ++i) theirs_.push_back(start());
  for (const auto& t : theirs_) t->tell("work\n");
  for (auto& t : tallies_) workers_.emplace_back([&] { work(who_, name_, guard_, ours_, t); });
}

std::unique_ptr<harness::program> arena::start() const {
  const bool node = who_.script.ends_with(".js");
  const std::vector<std::string> interpreter =
      node ? std::vector<std::string>{"/usr/bin/env", "node"}
           : std::vector<std::string>{"/usr/bin/python3", "-B"};
  auto words = interpreter;
  words.insert(words.end(), {HOLDFAST_SOURCE_DIR "/tests/interop/peers/" + who_.script, who_.ports,
                             name_, guard_});
  harness::surroundings around;
  around.environment = {"NODE_PATH=" + npm_packages()};
  auto started = std::make_unique<harness::program>(words, around);
  EXPECT_EQ(started->out.line(), "ready") << title();
  return started;
}

void arena::kill_one_of_theirs() const {
  const auto victim = start();
  victim->tell("hold\n");
  EXPECT_EQ(victim->out.line(), "holding") << title();
  victim->signal(SIGKILL);
}

void arena::kill_one_of_ours() const {
  std::vector<std::string> args{name_, who_.reads ? "reads" : "-"};
  args.insert(args.end(), who_.urls.begin(), who_.urls.end());
  harness::child victim("interop-holder", args);
  EXPECT_EQ(victim.expect_line(), "holding") << title();
  victim.kill();
}

std::vector<tally> arena::end() {
  ours_.end();
  for (auto& w : workers_) w.join();
  auto all = tallies_;
  for (const auto& t : theirs_) {
    t->tell("stop\n");
    std::istringstream(t->out.line()) >> all.emplace_back().sections >> all.back().violations;
  }
  return all;
}

}  // namespace interop_test
