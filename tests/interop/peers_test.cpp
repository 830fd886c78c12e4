#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <condition_variable>
#include <holdfast/holdfast.hpp>
#include <sstream>
#include <thread>

#include "harness/memcached_server.hpp"
#include "harness/process.hpp"
#include "harness/program.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"

// Real other programs and holdfast want the same lock, under load, for half a minute; one of each
// is killed while it has it. Whoever is in holds a lock of the kernel on a file, too: that shows
// whether it is alone, and nobody keeps it who died.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using holdfast::mutex;

constexpr auto half_a_minute = 30s;
constexpr const char* name = "orders";

/// As in peers/party.py.
class guard {
 public:
  explicit guard(const std::string& path)
      : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {}
  ~guard() { ::close(fd_); }
  guard(const guard&) = delete;
  bool enter() const { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }
  void leave() const { ::flock(fd_, LOCK_UN); }

 private:
  const int fd_;
};

struct tally {
  int sections = 0;
  int violations = 0;
};

/// Pauses of those who work here, which end at once when the work does.
class shift {
 public:
  bool over_after(std::chrono::milliseconds d) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, d, [&] { return over_; });
  }
  void end() {
    const std::lock_guard lock{mutex_};
    over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
};

tally work(const std::string& url, const std::string& guard_path, shift& until) {
  const auto session = holdfast::open(url);
  mutex lock(session, name, {.lease = 20s});
  const guard alone(guard_path);
  tally mine;
  while (!until.over_after(2ms)) {
    const holdfast::lease held = lock.acquire();
    if (alone.enter())
      alone.leave();
    else
      ++mine.violations;
    ++mine.sections;
  }
  return mine;
}

// Takes it and never gives it back.
const harness::role holder{"interop-holder", [](const std::vector<std::string>& args) {
                             const auto session = holdfast::open(args.at(0));
                             mutex lock(session, name, {.lease = 2s});
                             lock.lock();
                             harness::say("holding");
                             (void)harness::hear();
                             return 0;
                           }};

struct party {
  std::string script;
  std::string options;  ///< of the URL
};
std::ostream& operator<<(std::ostream& out, const party& p) { return out << p.script; }

class peers : public testing::TestWithParam<party> {
 protected:
  std::unique_ptr<harness::program> start() const {
    const std::string script =
        HOLDFAST_SOURCE_DIR "/tests/interop/peers/" + GetParam().script + "_peer.py";
    auto started = std::make_unique<harness::program>(
        std::vector<std::string>{"/usr/bin/python3", "-B", script, std::to_string(port()), name,
                                 guard_},
        harness::surroundings{});
    EXPECT_EQ(started->out.line(), "ready");
    return started;
  }
  bool on_memcached() const { return GetParam().script == "memcached"; }
  int port() const { return on_memcached() ? cache_->port() : redis_->port(); }
  std::string url() const {
    return on_memcached() ? cache_->url() : redis_->tcp_url(GetParam().options);
  }
  static tally tally_of(harness::program& p) {
    p.tell("stop\n");
    tally t;
    std::istringstream(p.out.line()) >> t.sections >> t.violations;
    return t;
  }
  void kill_one_of_theirs() const {
    const auto victim = start();
    victim->tell("hold\n");
    EXPECT_EQ(victim->out.line(), "holding");
    victim->signal(SIGKILL);
  }
  void kill_one_of_ours() const {
    harness::child victim("interop-holder", {url()});
    EXPECT_EQ(victim.expect_line(), "holding");
    victim.kill();
  }

  harness::temp_dir dir_;
  const std::string guard_ = dir_.file("guard");
  std::unique_ptr<harness::memcached_server> cache_{on_memcached() ? new harness::memcached_server
                                                                   : nullptr};
  std::unique_ptr<harness::redis_server> redis_{on_memcached() ? nullptr
                                                               : new harness::redis_server};
};

INSTANTIATE_TEST_SUITE_P(programs, peers,
                         testing::Values(party{"redlock", "?dialect=redlock"},
                                         party{"setnx", "?dialect=setnx"},
                                         party{"redisson", "?dialect=redisson"},
                                         party{"memcached", ""}),
                         [](const auto& p) { return p.param.script; });

TEST_P(peers, only_one_is_in_for_half_a_minute_and_all_go_on_after_one_was_killed) {
  const auto one = start();
  const auto another = start();
  one->tell("work\n");
  another->tell("work\n");
  shift ours;
  std::vector<tally> tallies(2);
  std::vector<std::thread> workers;
  for (auto& t : tallies) workers.emplace_back([&] { t = work(url(), guard_, ours); });
  shift pauses;
  (void)pauses.over_after(half_a_minute / 3);
  kill_one_of_theirs();
  (void)pauses.over_after(half_a_minute / 3);
  kill_one_of_ours();
  (void)pauses.over_after(half_a_minute / 3);
  ours.end();
  for (auto& w : workers) w.join();
  tallies.push_back(tally_of(*one));
  tallies.push_back(tally_of(*another));
  for (const auto& t : tallies) {
    EXPECT_GT(t.sections, 10) << "everybody gets in";
    EXPECT_EQ(t.violations, 0);
  }
}

}  // namespace
}  // namespace interop_test
