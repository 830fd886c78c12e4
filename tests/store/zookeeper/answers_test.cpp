#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/still_clock.hpp"
#include "store/zookeeper/client.hpp"
#include "store/zookeeper/fixture.hpp"
#include "store/zookeeper/zookeeper.hpp"

// ZooKeeper's client delivers answers on threads of its own, whose frames are C: an exception there
// ends the program.
namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::zookeeper::requests;

constexpr std::size_t large = std::size_t{64} << 20;

/// While this object lives, this process gets no large piece of memory.
class little_memory {
 public:
  little_memory() {
    ::getrlimit(RLIMIT_AS, &before_);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit little = before_;
    little.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + large / 4;
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  }
  little_memory(const little_memory&) = delete;
  little_memory& operator=(const little_memory&) = delete;
  ~little_memory() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

template <class Tell>
void expect_told_as_no_memory(Tell tell) {
  const auto asked = std::make_shared<requests>(1);
  auto token = asked->expect(0);
  const void* const data = token.get();
  requests::sent(std::move(token), ZOK);
  {
    const little_memory now;
    tell(data);
  }
  const auto answers = asked->wait(holdfast::real_clock(), holdfast::boot_time{});
  EXPECT_EQ(answers.front().rc, ZMARSHALLINGERROR);
  EXPECT_TRUE(answers.front().text.empty() && answers.front().names.empty());
}

TEST(zookeeper_answers, without_memory_are_reported_as_a_lack_of_memory) {
  const std::string text(large, 'x');
  std::vector<char*> names(large / sizeof(std::string), const_cast<char*>("name"));
  const String_vector all{static_cast<int>(names.size()), names.data()};
  const struct Stat stat{};
  expect_told_as_no_memory([&](const void* data) {
    requests::on_data(ZOK, text.data(), static_cast<int>(text.size()), &stat, data);
  });
  expect_told_as_no_memory([&](const void* data) { requests::on_names(ZOK, &all, data); });
  expect_told_as_no_memory([&](const void* data) { requests::on_text(ZOK, text.c_str(), data); });
  expect_told_as_no_memory(
      [&](const void* data) { requests::on_text_stat(ZOK, text.c_str(), &stat, data); });
}

TEST(zookeeper_answers, of_unsent_requests_are_available_at_once) {
  const auto asked = std::make_shared<requests>(1);
  requests::sent(asked->expect(0), ZINVALIDSTATE);
  EXPECT_EQ(asked->wait(holdfast::real_clock(), holdfast::forever).front().rc, ZINVALIDSTATE);
}

/// The clock of a process that is suspended for an hour as soon as it waits. When it waits once
/// more, the client's threads continue, too.
class clock_of_a_stopped_process : public harness::still_clock {
 public:
  std::function<void()> client_goes_on = [] {};
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    if (!std::exchange(stood_still_, true)) return time.advance(1h);
    std::thread client(client_goes_on);
    still_clock::wait_until(lock, cv, until);
    lock.unlock();
    client.join();
    lock.lock();
  }

 private:
  bool stood_still_ = false;
};

TEST(zookeeper_answers, that_came_while_the_process_stood_still_are_taken) {
  clock_of_a_stopped_process clock;
  const auto asked = std::make_shared<requests>(1);
  auto token = asked->expect(0);
  const void* const data = token.get();
  requests::sent(std::move(token), ZOK);
  clock.client_goes_on = [&] { requests::on_void(ZNONODE, data); };
  EXPECT_EQ(asked->wait(clock, clock.now() + 2s).front().rc, ZNONODE);
}

TEST(zookeeper_answers, that_open_the_session_of_a_stopped_process_are_accepted) {
  clock_of_a_stopped_process clock;
  holdfast::store::zookeeper::zookeeper_options options;
  options.hosts = calm_ensemble().hosts();
  options.clock = &clock;
  const auto opened = open_zookeeper(options);
  EXPECT_TRUE(opened) << opened.error().what;
}

TEST(zookeeper_answers, that_did_not_come_are_awaited_only_briefly_after_a_stop) {
  clock_of_a_stopped_process clock;
  const auto asked = std::make_shared<requests>(1);
  const auto token = asked->expect(0);
  clock.client_goes_on = [&] { clock.time.advance(1s); };
  EXPECT_EQ(asked->wait(clock, clock.now() + 2s).front().rc, ZOPERATIONTIMEOUT);
}

// The session goes on, at the server that it has moved to.
TEST(zookeeper_answers, that_come_from_a_server_that_the_session_has_left_end_no_session) {
  const auto said = holdfast::store::zookeeper::explain(ZSESSIONMOVED, {}, false);
  EXPECT_EQ(said.code, holdfast::errc::unavailable);
  EXPECT_TRUE(harness::contains(said.what, zerror(ZSESSIONMOVED))) << said.what;
  EXPECT_FALSE(harness::contains(said.what, "has ended")) << said.what;
  EXPECT_TRUE(harness::contains(said.what, "another server")) << said.what;
}

long threads_of_this_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

/// The servers take a client with the same number for the same client, and drop the former
/// connection; then this one closes the session.
void end_session_of(holdfast::store::zookeeper::connection& c) {
  const clientid_t same = *zoo_client_id(c.handle());
  zhandle_t* const other = zookeeper_init2(
      calm_ensemble().hosts().c_str(), [](auto...) {}, 10'000, &same, nullptr, 0, [](auto...) {});
  harness::eventually("the other has it", [&] {
    return zoo_state(other) == ZOO_CONNECTED_STATE || is_unrecoverable(other) != ZOK;
  });
  zookeeper_close(other);
}

// Otherwise the client's thread would check a thousand times a second whether it has to end.
TEST(zookeeper_session, that_has_ended_keeps_no_thread_of_the_client) {
  holdfast::store::zookeeper::zookeeper_options options;
  options.hosts = calm_ensemble().hosts();
  options.clock = &holdfast::real_clock();
  const long before = threads_of_this_process();
  const auto opened = holdfast::store::zookeeper::connection::open(options);
  ASSERT_TRUE(opened) << opened.error().what;
  const auto& connection = *opened;
  ASSERT_TRUE(connection->wait_connected(options.clock->now() + 1min));
  end_session_of(*connection);
  harness::eventually("the end of the session is known", [&] { return connection->over(); });
  harness::eventually("no thread is left", [&] { return threads_of_this_process() == before; });
}

TEST(zookeeper_time, leaves_nothing_behind_when_answers_are_lost) {
  harness::fault_proxy proxy(calm_ensemble().port(0));
  holdfast::store::zookeeper::zookeeper_options options;
  options.hosts = "127.0.0.1:" + std::to_string(proxy.port());
  options.base = fresh_base();
  options.clock = &holdfast::real_clock();
  const auto opened = open_zookeeper(options);
  ASSERT_TRUE(opened) << opened.error().what;
  for (int i = 0; i < 3; ++i) {
    proxy.with(
        [](holdfast::faultproxy::relay& r) { r.cut_after(holdfast::faultproxy::way::down, 0); });
    EXPECT_FALSE((*opened)->time());
  }
  harness::eventually("the time is told", [&] { return (*opened)->time().ok(); });
  const tree all(calm_ensemble().hosts());
  EXPECT_EQ(all.children(options.base), std::vector<std::string>());
}

}  // namespace
}  // namespace zookeeper_test
