#include "store/sqlite/peer.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "fixture.hpp"
#include "harness/eventually.hpp"
#include "harness/process.hpp"

namespace sqlite_test {
namespace {

using holdfast::store::sqlite::departed;
using holdfast::store::sqlite::parse_peer;
using holdfast::store::sqlite::peer;
using holdfast::store::sqlite::this_session;
using holdfast::store::sqlite::to_string;
using holdfast::store::sqlite::watch_process;

peer self() {
  auto made = this_session();
  if (!made) throw std::runtime_error(made.error().what);
  return *made;
}

TEST(peers, an_address_is_read_back_as_it_was_written) {
  const peer me = self();
  EXPECT_EQ(parse_peer(to_string(me)), me);
  EXPECT_EQ(me.pid, ::getpid());
  EXPECT_NE(me.started, 0u);
}

TEST(peers, two_sessions_of_a_process_have_different_addresses) {
  EXPECT_NE(to_string(self()), to_string(self()));
}

TEST(peers, text_that_is_no_address_is_refused) {
  const std::string good = to_string(self());
  for (const std::string& bad :
       {std::string{}, std::string{"-"}, std::string{"----"}, "x" + good, good + "-1", good + "/",
        "../" + good, std::string{"00000001-1-0-1-00000001"},
        std::string{"00000001-1--5-1-00000001"}, std::string{"00000001-1-1-1-0000000g"},
        std::string{"1-1-1-1-1"}, std::string{"m1"},
        std::string{"00000001-1-99999999999-1-00000001"}, good.substr(0, good.size() - 1)}) {
    EXPECT_FALSE(parse_peer(bad)) << bad;
  }
}

TEST(peers, a_living_process_has_not_departed) {
  EXPECT_FALSE(departed(self(), self()));
  peer parent = self();
  parent.pid = ::getppid();
  parent.started = 1;  // wrong, so this is another process of the same number
  EXPECT_TRUE(departed(parent, self()));
}

TEST(peers, without_a_known_start_time_are_not_reported_as_departed) {
  peer parent = self();
  parent.pid = ::getppid();
  parent.started = 0;
  EXPECT_FALSE(departed(parent, self()));
}

TEST(peers, a_process_of_an_earlier_boot_has_departed) {
  peer other = self();
  other.boot ^= 1;
  EXPECT_TRUE(departed(other, self()));
}

TEST(peers, a_later_process_with_the_same_number_is_another_one) {
  peer earlier = self();
  earlier.started -= 1;
  EXPECT_TRUE(departed(earlier, self()));
}

TEST(peers, nothing_is_said_about_processes_of_another_pid_namespace) {
  peer other = self();
  other.pid_space += 1;
  other.pid = 1 << 22;
  EXPECT_FALSE(departed(other, self()));
  EXPECT_FALSE(watch_process(other, self()));
}

TEST(peers, nothing_is_said_if_the_own_numbers_cannot_be_compared) {
  peer me = self();
  me.pid_space = 0;
  peer other = me;
  other.pid = 1 << 22;
  EXPECT_FALSE(departed(other, me));
}

const harness::role sitter{"sitter", [](const auto&) {
                             harness::say(to_string(self()));
                             harness::hear();
                             return 0;
                           }};

TEST(peers, a_killed_process_has_departed_and_its_descriptor_is_readable) {
  harness::child other{"sitter"};
  const auto who = parse_peer(other.expect_line());
  ASSERT_TRUE(who);
  EXPECT_FALSE(departed(*who, self()));
  const auto process = watch_process(*who, self());
  ASSERT_TRUE(process);
  pollfd end{process.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0);
  other.kill();
  EXPECT_EQ(::poll(&end, 1, -1), 1);
  EXPECT_TRUE(departed(*who, self()));
  EXPECT_FALSE(watch_process(*who, self()));
}

TEST(peers, a_stopped_process_has_not_departed) {
  harness::child other{"sitter"};
  const auto who = parse_peer(other.expect_line());
  other.stop();
  EXPECT_FALSE(departed(*who, self()));
  other.resume();
}

TEST(peers, a_zombie_process_has_departed) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string me = to_string(self());
    (void)!::write(ends[1], me.data(), me.size());
    ::_exit(0);
  }
  char text[100];
  const auto n = ::read(ends[0], text, sizeof text);
  ASSERT_GT(n, 0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto who = parse_peer({text, static_cast<std::size_t>(n)});
  ASSERT_TRUE(who);
  EXPECT_TRUE(departed(*who, self()));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

// Its first thread has ended and is a zombie, but another one continues and may hold locks.
const harness::role headless{
    "headless", [](const auto&) -> int {
      static const std::string first = "/proc/self/task/" + std::to_string(::getpid()) + "/stat";
      std::thread{[] {
        harness::eventually("the first thread ends",
                            [] { return bytes_of(first).find(") Z ") != std::string::npos; });
        harness::say(to_string(self()));
        for (;;) ::pause();
      }}.detach();
      ::pthread_exit(nullptr);
    }};

TEST(peers, a_process_whose_first_thread_ended_has_not_departed) {
  harness::child other{"headless"};
  const auto who = parse_peer(other.expect_line());
  ASSERT_TRUE(who);
  EXPECT_FALSE(departed(*who, self()));
  other.kill();
  EXPECT_TRUE(departed(*who, self()));
}

}  // namespace
}  // namespace sqlite_test
