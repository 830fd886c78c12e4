#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <holdfast/testing.hpp>
#include <thread>

#include "fixture.hpp"
#include "harness/process.hpp"
#include "harness/seed.hpp"
#include "store/sql/notification_text.hpp"
#include "store/sqlite/peer.hpp"
#include "store/sqlite/quiet_write.hpp"

namespace sqlite_test {
namespace {

using holdfast::boot_time;
using holdfast::forever;
namespace fs = std::filesystem;

constexpr boot_time at_once{};

notification grant_for(const session& to, std::uint64_t fence = 1) {
  notification n;
  n.what = notification_kind::granted;
  n.name = "name";
  n.owner = {1, 2};
  n.fence = fence;
  n.expires_at = 42;
  n.peer = to->inbox().peer();
  return n;
}

class inboxes : public sqlite_store {
 protected:
  std::string pipe_of(const session& s) const {
    return path("locks.db-holdfast") + "/" + s->inbox().peer();
  }
  void put(const session& to, std::string_view bytes) const {
    const int pipe = ::open(pipe_of(to).c_str(), O_WRONLY | O_NONBLOCK);
    ASSERT_EQ(::write(pipe, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(pipe);
  }
  const session one_ = open(path());
  const session other_ = open(path());
};

TEST_F(inboxes, a_notification_arrives_as_it_was_sent) {
  const notification sent = grant_for(other_);
  EXPECT_TRUE(one_->tell(sent));
  EXPECT_EQ(other_->inbox().receive(forever), sent);
  EXPECT_EQ(other_->inbox().receive(at_once), std::nullopt);
  EXPECT_EQ(one_->inbox().receive(at_once), std::nullopt);
}

TEST_F(inboxes, a_session_can_tell_itself) {
  const notification sent = grant_for(one_);
  EXPECT_TRUE(one_->tell(sent));
  EXPECT_EQ(one_->inbox().receive(forever), sent);
}

TEST_F(inboxes, notifications_arrive_in_the_order_in_which_they_were_sent) {
  for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_TRUE(one_->tell(grant_for(other_, i)));
  for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(other_->inbox().receive(forever)->fence, i);
}

TEST_F(inboxes, a_notification_wakes_its_waiter) {
  std::optional<notification> got;
  std::jthread waiting{[&] { got = other_->inbox().receive(forever); }};
  EXPECT_TRUE(one_->tell(grant_for(other_)));
  waiting.join();
  EXPECT_EQ(got, grant_for(other_));
}

TEST_F(inboxes, an_interrupt_ends_the_wait_in_progress_or_else_the_next_one) {
  other_->inbox().interrupt();
  EXPECT_EQ(other_->inbox().receive(forever), std::nullopt);
  std::jthread waiting{[&] { EXPECT_EQ(other_->inbox().receive(forever), std::nullopt); }};
  other_->inbox().interrupt();
}

TEST_F(inboxes, an_interrupt_loses_no_notification) {
  EXPECT_TRUE(one_->tell(grant_for(other_)));
  other_->inbox().interrupt();
  EXPECT_EQ(other_->inbox().receive(forever), std::nullopt);
  EXPECT_EQ(other_->inbox().receive(forever), grant_for(other_));
}

TEST_F(inboxes, a_wait_ends_by_the_clock_of_the_session) {
  holdfast::testing::fake_clock time;
  sqlite_options options;
  options.path = path();
  options.clock = &time;
  const session store = open(std::move(options));
  const boot_time until = time.now() + std::chrono::hours(1);
  std::jthread waiting{[&] { EXPECT_EQ(store->inbox().receive(until), std::nullopt); }};
  time.advance(std::chrono::minutes(59));
  time.advance(std::chrono::minutes(2));
}

TEST_F(inboxes, a_closed_session_is_certainly_absent) {
  session closing = open(path());
  const notification late = grant_for(closing);
  closing.reset();
  EXPECT_FALSE(one_->tell(late));
}

const harness::role listener{"listener", [](const auto& args) {
                               const session store = open(args.at(0));
                               harness::say(store->inbox().peer());
                               const auto got = store->inbox().receive(forever);
                               harness::say(got ? got->name : "nothing");
                               harness::hear();
                               return 0;
                             }};

TEST_F(inboxes, a_notification_reaches_another_process) {
  harness::child other{"listener", {path()}};
  notification n = grant_for(one_);
  n.peer = other.expect_line();
  EXPECT_TRUE(one_->tell(n));
  EXPECT_EQ(other.expect_line(), "name");
}

TEST_F(inboxes, a_killed_process_is_certainly_absent) {
  harness::child other{"listener", {path()}};
  notification n = grant_for(one_);
  n.peer = other.expect_line();
  other.kill();
  EXPECT_FALSE(one_->tell(n));
}

// The next session to open removes the dead one's pipe; then, too, nobody is there.
TEST_F(inboxes, the_files_of_a_killed_process_are_removed_by_the_next_session) {
  harness::child other{"listener", {path()}};
  notification n = grant_for(one_);
  n.peer = other.expect_line();
  const std::string left = path("locks.db-holdfast") + "/" + n.peer;
  other.kill();
  EXPECT_TRUE(fs::exists(left));
  const session next = open(path());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(pipe_of(one_)));
  EXPECT_FALSE(one_->tell(n));
}

TEST_F(inboxes, nothing_is_certain_about_a_stopped_process) {
  harness::child other{"listener", {path()}};
  notification n = grant_for(one_);
  n.peer = other.expect_line();
  other.stop();
  EXPECT_TRUE(one_->tell(n));
  other.resume();
  EXPECT_EQ(other.expect_line(), "name");
}

TEST_F(inboxes, nothing_is_certain_when_the_folder_was_emptied) {
  const notification n = grant_for(other_);
  fs::remove_all(path("locks.db-holdfast"));
  EXPECT_TRUE(one_->tell(n));
  rule change = increments();
  EXPECT_TRUE(one_->transact("name", change).ok());
  EXPECT_TRUE(other_->transact("name", change).ok());
}

TEST_F(inboxes, nothing_is_certain_about_a_malformed_address) {
  for (const char* peer : {"", "x", "../locks.db", "/etc/passwd", "writer-queue-glibc-64-40"}) {
    notification n = grant_for(other_);
    n.peer = peer;
    EXPECT_TRUE(one_->tell(n));
  }
  EXPECT_EQ(shell(path()).ask_one("PRAGMA integrity_check"), "ok");
}

// The receiver polls by itself within a second; a sender never waits for it.
TEST_F(inboxes, a_full_inbox_makes_no_sender_wait) {
  std::uint64_t sent = 0;
  for (; sent < 5'000; ++sent) ASSERT_TRUE(one_->tell(grant_for(other_, sent)));
  std::uint64_t arrived = 0;
  while (const auto got = other_->inbox().receive(at_once)) EXPECT_EQ(got->fence, arrived++);
  EXPECT_GE(arrived, 200u);  // as many as one latch may wake in a process
  EXPECT_LT(arrived, sent);
  EXPECT_TRUE(one_->tell(grant_for(other_, 7)));
  EXPECT_EQ(other_->inbox().receive(forever)->fence, 7u);
}

TEST_F(inboxes, a_malformed_notification_is_dropped) {
  const std::string good = holdfast::store::sql::encode(grant_for(other_));
  for (const std::string& junk :
       {std::string{"\n\n\n"}, std::string{"hf1 granted\n"}, std::string(100, '\0') + "\n",
        good.substr(0, 20) + "\n", std::string(3'000, 'x') + "\n", std::string{"\xff\xfe\n"}}) {
    put(other_, junk);
  }
  EXPECT_TRUE(one_->tell(grant_for(other_)));
  EXPECT_EQ(other_->inbox().receive(forever), grant_for(other_));
  EXPECT_EQ(other_->inbox().receive(at_once), std::nullopt);
}

TEST_F(inboxes, a_line_without_an_end_spoils_one_notification_at_most) {
  for (int i = 0; i < 21; ++i) {
    put(other_, std::string(4'000, 'x'));
    EXPECT_EQ(other_->inbox().receive(at_once), std::nullopt);
  }
  EXPECT_TRUE(one_->tell(grant_for(other_, 1)));
  EXPECT_TRUE(one_->tell(grant_for(other_, 2)));
  EXPECT_EQ(other_->inbox().receive(forever)->fence, 2u);
}

TEST_F(inboxes, random_bytes_are_survived) {
  harness::random random;
  for (int i = 0; i < 200; ++i) {
    std::string junk(random.between<std::size_t>(1, 300), ' ');
    for (char& c : junk) c = static_cast<char>(random.between(0, 255));
    put(other_, junk);
    while (other_->inbox().receive(at_once)) {
    }
  }
  put(other_, "\n");
  EXPECT_TRUE(one_->tell(grant_for(other_)));
  EXPECT_EQ(other_->inbox().receive(forever), grant_for(other_));
}

bool is_pending(int signal) {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, signal) == 1;
}

// A notification to a dying process must not end a program that never ignored SIGPIPE.
TEST(quiet_write, a_pipe_without_a_reader_raises_no_signal) {
  const auto before = ::signal(SIGPIPE, SIG_DFL);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(holdfast::store::sqlite::write_quietly(ends[1], "x"), EPIPE);
  EXPECT_FALSE(is_pending(SIGPIPE));
  ::close(ends[1]);
  ::signal(SIGPIPE, before);
}

TEST(quiet_write, the_signal_mask_and_pending_signals_of_the_program_stay) {
  const auto before = ::signal(SIGPIPE, SIG_DFL);
  sigset_t pipe_only;
  sigset_t now;
  ::sigemptyset(&pipe_only);
  ::sigaddset(&pipe_only, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_only, nullptr);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  for (const bool expected : {false, true}) {
    if (expected) ::raise(SIGPIPE);
    EXPECT_EQ(holdfast::store::sqlite::write_quietly(ends[1], "x"), EPIPE);
    EXPECT_EQ(is_pending(SIGPIPE), expected);
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    EXPECT_EQ(::sigismember(&now, SIGPIPE), 1);
  }
  int taken = 0;
  ::sigwait(&pipe_only, &taken);
  ::pthread_sigmask(SIG_UNBLOCK, &pipe_only, nullptr);
  ::close(ends[1]);
  ::signal(SIGPIPE, before);
}

TEST_F(inboxes, only_users_that_may_write_to_the_database_may_write_to_an_inbox) {
  fs::permissions(path(), fs::perms{0640});
  fs::remove_all(path("locks.db-holdfast"));
  const session store = open(path());
  struct stat found{};
  ASSERT_EQ(::stat(path("locks.db-holdfast").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0750u);
  ASSERT_EQ(::stat(pipe_of(store).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  fs::permissions(path(), fs::perms{0660});
  const session shared = open(path());
  ASSERT_EQ(::stat(pipe_of(shared).c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0620u);
  ASSERT_EQ(::stat(path("locks.db-holdfast").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0770u);
}

// ---- watching

void expect_departure(const session& of, const std::string& who) {
  const auto got = of->inbox().receive(forever);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->what, notification_kind::departed);
  EXPECT_EQ(got->peer, who);
}

TEST_F(inboxes, the_death_of_a_watched_session_is_reported_once) {
  harness::child other{"listener", {path()}};
  const std::string who = other.expect_line();
  one_->inbox().watch(who);
  EXPECT_FALSE(one_->departed(who));
  EXPECT_EQ(one_->inbox().receive(at_once), std::nullopt);
  other.kill();
  EXPECT_TRUE(one_->departed(who));
  expect_departure(one_, who);
  EXPECT_EQ(one_->inbox().receive(at_once), std::nullopt);
  one_->inbox().unwatch(who);
}

TEST_F(inboxes, the_death_of_a_watched_session_wakes_the_waiter) {
  harness::child other{"listener", {path()}};
  const std::string who = other.expect_line();
  std::jthread waiting{[&] { expect_departure(one_, who); }};
  one_->inbox().watch(who);
  other.kill();
}

TEST_F(inboxes, watching_the_dead_tells_at_once_and_each_time) {
  harness::child other{"listener", {path()}};
  const std::string who = other.expect_line();
  other.kill();
  for (int i = 0; i < 2; ++i) {
    one_->inbox().watch(who);
    expect_departure(one_, who);
  }
  one_->inbox().unwatch(who);
  one_->inbox().unwatch(who);
  EXPECT_EQ(one_->inbox().receive(at_once), std::nullopt);
}

TEST_F(inboxes, the_death_of_an_unwatched_session_is_not_reported) {
  harness::child other{"listener", {path()}};
  const std::string who = other.expect_line();
  one_->inbox().watch(who);
  one_->inbox().watch(who);
  one_->inbox().unwatch(who);
  one_->inbox().unwatch(who);
  one_->inbox().unwatch(who);
  other.kill();
  EXPECT_EQ(one_->inbox().receive(at_once), std::nullopt);
  EXPECT_TRUE(one_->departed(who));
}

TEST_F(inboxes, a_session_watched_twice_is_still_watched_after_one_stopped) {
  harness::child other{"listener", {path()}};
  const std::string who = other.expect_line();
  one_->inbox().watch(who);
  one_->inbox().watch(who);
  one_->inbox().unwatch(who);
  other.kill();
  expect_departure(one_, who);
}

/// No file can be opened while it lives.
class no_descriptors {
 public:
  no_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;
  ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Otherwise its holds would be kept until the lease is over.
TEST_F(inboxes, the_death_of_a_process_without_a_descriptor_is_noticed_nevertheless) {
  harness::child other{"listener", {path()}};
  const std::string who = other.expect_line();
  // UndefinedBehaviorSanitizer needs a descriptor when it meets a class for the first time.
  one_->inbox().watch(who);
  one_->inbox().unwatch(who);
  {
    const no_descriptors left;
    one_->inbox().watch(who);
  }
  EXPECT_FALSE(one_->departed(who));
  other.kill();
  EXPECT_TRUE(one_->departed(who));
  one_->inbox().unwatch(who);
}

TEST_F(inboxes, each_death_of_many_watched_sessions_is_reported) {
  std::vector<harness::child> others;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back(others.emplace_back("listener", std::vector{path()}).expect_line());
    one_->inbox().watch(names.back());
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i].kill();
    expect_departure(one_, names[i]);
  }
}

TEST_F(inboxes, unknown_addresses_are_watched_without_a_report) {
  auto elsewhere = holdfast::store::sqlite::parse_peer(one_->inbox().peer());
  elsewhere->pid_space += 1;
  for (const std::string& who : {to_string(*elsewhere), other_->inbox().peer(), std::string{"x"}}) {
    one_->inbox().watch(who);
    EXPECT_FALSE(one_->departed(who));
    EXPECT_EQ(one_->inbox().receive(at_once), std::nullopt);
    one_->inbox().unwatch(who);
  }
}

/// The number of descriptors in all polls of this process.
long polled() {
  long count = 0;
  for (const auto& entry : fs::directory_iterator{"/proc/self/fdinfo"}) {
    const std::string info = bytes_of(entry.path().string());
    for (auto at = info.find("tfd:"); at != std::string::npos; at = info.find("tfd:", at + 1)) {
      ++count;
    }
  }
  return count;
}

// The child has a copy of every descriptor: closing ours does not remove it from the poll.
TEST_F(inboxes, a_death_is_reported_once_also_if_a_forked_child_lives_on) {
  harness::child other{"listener", {path()}};
  const std::string who = other.expect_line();
  const long before = polled();
  one_->inbox().watch(who);
  EXPECT_EQ(polled(), before + 1);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  other.kill();
  expect_departure(one_, who);
  EXPECT_EQ(one_->inbox().receive(at_once), std::nullopt);
  EXPECT_EQ(polled(), before);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(inboxes, thousands_of_addresses_do_not_use_up_the_descriptors) {
  harness::child other{"listener", {path()}};
  auto who = holdfast::store::sqlite::parse_peer(other.expect_line());
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator{"/proc/self/fd"}, fs::directory_iterator{});
  };
  const auto before = descriptors();
  for (std::uint32_t i = 0; i < 3'000; ++i) {
    who->session = i;
    EXPECT_FALSE(one_->departed(to_string(*who)));
  }
  EXPECT_LT(descriptors() - before, 100);
}

}  // namespace
}  // namespace sqlite_test
