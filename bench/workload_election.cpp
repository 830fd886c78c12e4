#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <holdfast/holdfast.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/leader.hpp"
#include "bench/workload.hpp"

// How soon another process leads. resign: W5 with an election in place of the mutex. take-over: the
// leader is killed; measured from the end of its lease, or where the store sees deaths, from its
// death.
namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds lease_length = 1s;
constexpr const char* office = "bench:take-over";

holdfast::election office_of(const holdfast::session& s) {
  return holdfast::election{s, office, {.lease = lease_length}};
}

/// A leader in a process of its own.
class victim {
 public:
  explicit victim(const std::string& url) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw std::system_error{errno, std::generic_category(), "pipe2"};
    }
    const std::string fd = std::to_string(ends[1]);
    const char* argv[] = {"holdfast-bench", "--leader", url.c_str(), office, fd.c_str(), nullptr};
    pid_ = fork();
    if (pid_ < 0) throw std::system_error{errno, std::generic_category(), "fork"};
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      fcntl(ends[1], F_SETFD, 0);
      execv("/proc/self/exe", const_cast<char**>(argv));
      _exit(127);
    }
    close(ends[1]);
    const bool told = read(ends[0], &asked_at_, sizeof asked_at_) == sizeof asked_at_;
    close(ends[0]);
    if (told) return;
    die();
    throw std::runtime_error{"the process that was to lead has ended"};
  }
  ~victim() { die(); }
  victim(const victim&) = delete;
  victim& operator=(const victim&) = delete;

  void die() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  /// Its lease began after that.
  std::int64_t asked_at() const { return asked_at_; }

 private:
  pid_t pid_ = 0;
  std::int64_t asked_at_ = 0;
};

/// Whatever fails, the thread that waits for the victim's end must not wait for ever.
struct dies_before_join {
  victim& leads;
  ~dies_before_join() { leads.die(); }
};

/// False if the leader renewed its lease before it died, or lost it: then nobody knows when the
/// lease ends, or has ended.
bool succeed(shared_state& a, const holdfast::session& s) {
  auto elected = office_of(s);
  victim leads{a.url};
  std::atomic<std::int64_t> leads_at{0};
  std::jthread successor{[&] {
    const auto mine = elected.campaign();
    leads_at = now_ns();
  }};
  const dies_before_join guard{leads};
  while (leads_at == 0 && s.show(office).waiters.empty()) std::this_thread::yield();
  const std::int64_t killed_at = now_ns();
  leads.die();
  successor.join();
  if (leads_at < killed_at) return false;
  if (killed_at - leads.asked_at() > lease_length / 3 / 1ns) return false;
  const bool at_once = s.can().sees_death;
  const auto due = at_once ? killed_at : leads.asked_at() + lease_length / 1ns;
  a.participants[0].wait.add(std::chrono::nanoseconds{leads_at - due});
  return true;
}

void sit(shared_state& a, unsigned, subject& s) {
  a.round_trip_ns = round_trip_ns(*s.session());
  a.go.wait_for(1);
  for (int tries = 20; !succeed(a, *s.session());) {
    if (--tries == 0) throw std::runtime_error{"no leader was killed in time: too busy a machine"};
  }
}

void conduct(const workers& all, shared_state& a, std::chrono::milliseconds) {
  a.go.set(1);
  all.join();
}

outcome sum_up(const shared_state& a) {
  const histogram waits = all_waits(a);
  outcome o;
  o.acquired = static_cast<double>(waits.total());
  o.p50_us = waits.percentile_us(0.5);
  o.round_trips = 1e3 * o.p50_us / static_cast<double>(a.round_trip_ns);
  return o;
}

}  // namespace

int leader_main(char** argv) {
  const auto session = holdfast::open(argv[2]);
  holdfast::election elected{session, argv[3], {.lease = lease_length}};
  (void)elected.campaign();  // for the costs that come only once
  const std::int64_t asked_at = now_ns();
  const auto mine = elected.campaign();
  const int fd = std::stoi(argv[4]);
  if (write(fd, &asked_at, sizeof asked_at) != sizeof asked_at) return 1;
  for (;;) pause();
}

const workload resign{
    .name = "resign",
    .about = "W5 by election: from the leader's resign() to the return of the other's campaign()",
    .processes = 2,
    .threads = 2,
    .own_process = true,
    .by = compared::p50_us,
    .host_baseline = "",
    .variant = "election",
    .needs = {&holdfast::store::capabilities::election},
    .sit = give_and_receive,
    .conduct = let_them,
    .sum_up = sum_up_hand_overs,
};

const workload take_over{
    .name = "take-over",
    .about = "the leader is killed: from the end of its lease (its death, if seen) to the next",
    .processes = 1,
    .threads = 1,
    .own_process = true,
    .by = compared::p50_us,
    .host_baseline = "",
    .starts_processes = true,
    .needs = {&holdfast::store::capabilities::election, &holdfast::store::capabilities::expiring},
    .sit = sit,
    .conduct = conduct,
    .sum_up = sum_up,
};

}  // namespace bench
