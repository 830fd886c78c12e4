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

/// As in peers/party.py: longer than any thread waits for the processor.
constexpr auto working = 20s;
constexpr auto dying = 2s;
/// Between two turns: enough for the other tests of the machine.
constexpr auto pause = 8ms;

/// As in peers/party.py.
class guard {
 public:
  guard(const std::string& path, unsigned room) {
    for (unsigned i = 0; i < room; ++i) {
      const auto file = i == 0 ? path : path + "." + std::to_string(i);
      fds_.push_back(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    }
  }
  ~guard() {
    for (const int fd : fds_) ::close(fd);
  }
  guard(const guard&) = delete;
  bool enter(bool reads) {
    for (in_ = 0; in_ < fds_.size(); ++in_)
      if (::flock(fds_[in_], (reads ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return true;
    return false;
  }
  void leave() const { ::flock(fds_[in_], LOCK_UN); }

 private:
  std::vector<int> fds_;
  std::size_t in_ = 0;
};

/// An expiring permit with the interface of a lock.
class expiring_permits {
 public:
  expiring_permits(const holdfast::session& s, const std::string& name,
                   std::chrono::milliseconds lease)
      : all_(s, name, permits_of_the_arena), lease_(lease) {}
  std::shared_ptr<const holdfast::permit> acquire() {
    return {new holdfast::permit(all_.acquire(lease_)), [this](const holdfast::permit* p) {
              all_.release(p->id);
              delete p;
            }};
  }

 private:
  holdfast::expiring_semaphore all_;
  const std::chrono::milliseconds lease_;
};

// A lock on one server, or on several.
template <class Use>
void with_lock_on(const std::vector<std::string>& urls, shared_as what, const std::string& name,
                  std::chrono::milliseconds lease, Use use) {
  std::vector<holdfast::session> sessions;
  for (const auto& url : urls) sessions.push_back(holdfast::open(url));
  if (what == shared_as::shared_mutex) {
    holdfast::shared_mutex lock(sessions.front(), name, {{.lease = lease}, {}});
    return use(lock);
  }
  if (what == shared_as::fair_mutex) {
    holdfast::fair_mutex lock(sessions.front(), name, {.lease = lease});
    return use(lock);
  }
  if (what == shared_as::semaphore) {
    holdfast::semaphore lock(sessions.front(), name, permits_of_the_arena, {.lease = lease});
    return use(lock);
  }
  if (what == shared_as::expiring) {
    expiring_permits lock(sessions.front(), name, lease);
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

// Acquires it and never releases it.
const harness::role holder{"interop-holder", [](const std::vector<std::string>& args) {
                             const auto what = static_cast<shared_as>(std::stoi(args.at(1)));
                             with_lock_on({args.begin() + 2, args.end()}, what, args.at(0), dying,
                                          [&](auto& lock) {
                                            const auto held = take(lock, true);
                                            harness::say("holding");
                                            (void)harness::hear();
                                          });
                             return 0;
                           }};

void work(const party& who, const std::string& name, const std::string& guard_path, shift& until,
          tally& mine) {
  const bool several = who.what == shared_as::semaphore || who.what == shared_as::expiring;
  guard alone(guard_path, several ? permits_of_the_arena : 1);
  bool reads = false;
  with_lock_on(who.urls, who.what, name, working, [&](auto& lock) {
    while (!until.over_after(pause)) {
      reads = who.what == shared_as::shared_mutex && !reads;
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
      guard_(folder + "/" + who_.title + ".guard") {
  for (int i = 0; i < 3; ++i) theirs_.push_back(start());
}

arena::~arena() {
  ours_.end();
  for (auto& w : workers_) {
    if (w.joinable()) w.join();
  }
}

void arena::prepare() const {
  for (const auto& t : theirs_) EXPECT_EQ(t->out.line(), "ready") << title();
}

void arena::begin() {
  for (std::size_t i = 0; i < 2; ++i) theirs_[i]->tell("work\n");
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
  return std::make_unique<harness::program>(words, around);
}

void arena::kill_one_of_theirs() const {
  const auto& victim = theirs_.back();
  victim->tell("hold\n");
  EXPECT_EQ(victim->out.line(), "holding") << title();
  victim->signal(SIGKILL);
}

void arena::kill_one_of_ours() const {
  std::vector<std::string> args{name_, std::to_string(static_cast<int>(who_.what))};
  args.insert(args.end(), who_.urls.begin(), who_.urls.end());
  harness::child victim("interop-holder", args);
  EXPECT_EQ(victim.expect_line(), "holding") << title();
  victim.kill();
}

std::vector<tally> arena::end() {
  ours_.end();
  for (auto& w : workers_) w.join();
  auto all = tallies_;
  for (std::size_t i = 0; i < 2; ++i) {
    theirs_[i]->tell("stop\n");
    std::istringstream(theirs_[i]->out.line()) >> all.emplace_back().sections >>
        all.back().violations;
  }
  return all;
}

}  // namespace interop_test
