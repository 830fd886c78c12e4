#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <span>
#include <sstream>
#include <thread>

#include "harness/program.hpp"
#include "harness/redis_server.hpp"
#include "interop/arena.hpp"
#include "paths.hpp"

// A hot lock, wanted all the time by two processes of another vendor's client and by two sessions
// of holdfast, two threads each.
namespace interop_test {
namespace {

using namespace std::chrono_literals;

/// Long enough for three of the seconds in which holdfast finds out whether pollers come.
constexpr auto altogether = 16s;
constexpr auto of_a_turn = 3ms;

class hot_lock {
 public:
  explicit hot_lock(std::string dialect) : dialect_(std::move(dialect)) {
    if (dialect_ == "setnx") server_.may_stay("hot", "its time is a key for ever");
    for (int i = 0; i < 2; ++i) {
      const std::vector<std::string> words{"/usr/bin/python3",
                                           "-B",
                                           HOLDFAST_SOURCE_DIR "/tests/interop/peers/rival.py",
                                           dialect_,
                                           std::to_string(server_.port()),
                                           "hot",
                                           "2",
                                           std::to_string(of_a_turn.count())};
      theirs_.push_back(std::make_unique<harness::program>(words, harness::surroundings{}));
      sessions_.push_back(holdfast::open(server_.tcp_url("?dialect=" + dialect_)));
    }
  }
  ~hot_lock() {
    over_.end();
    for (auto& w : workers_) w.join();
  }

  void begin() {
    for (const auto& t : theirs_) EXPECT_EQ(t->out.line(), "ready");
    for (const auto& t : theirs_) t->tell("work\n");
    for (std::size_t i = 0; i < 4; ++i) workers_.emplace_back([this, i] { work(i / 2); });
  }
  /// Of the other program's two processes, then of holdfast's two sessions.
  std::vector<int> end() {
    over_.end();
    std::vector<int> all;
    for (const auto& t : theirs_) {
      t->tell("stop\n");
      std::istringstream(t->out.line()) >> all.emplace_back();
    }
    for (const auto& t : turns_) all.push_back(t);
    return all;
  }
  const std::string& dialect() const { return dialect_; }

 private:
  void work(std::size_t session) {
    holdfast::mutex lock(sessions_[session], "hot", {.lease = 20s});
    for (bool over = false; !over;) {
      const std::lock_guard turn{lock};
      ++turns_[session];
      over = over_.over_after(of_a_turn);
    }
  }

  const std::string dialect_;
  const harness::redis_server server_;
  std::vector<std::unique_ptr<harness::program>> theirs_;
  std::vector<holdfast::session> sessions_;
  shift over_;
  std::array<std::atomic<int>, 2> turns_{};
  std::vector<std::thread> workers_;
};

int sum_of(std::span<const int> turns) {
  int all = 0;
  for (const int t : turns) all += t;
  return all;
}

// All run at the same time: together they take no longer than one, and most of that is sleep. Which
// of two pollers comes first in a second is chance, and there are few seconds: so the share of both
// together is checked.
TEST(fair_shares, each_side_has_a_third_of_an_equal_share_at_least) {
  std::vector<std::unique_ptr<hot_lock>> locks;
  for (const char* dialect : {"redisson", "redlock", "setnx"})
    locks.push_back(std::make_unique<hot_lock>(dialect));
  shift all_at_once;
  for (const auto& l : locks) l->begin();
  (void)all_at_once.over_after(altogether);
  for (const auto& l : locks) {
    const auto turns = l->end();
    const std::span of_each(turns);
    const int all = sum_of(of_each);
    ASSERT_GT(all, 0) << l->dialect();
    std::ostringstream said;
    for (const int t : turns) said << t << ' ';
    RecordProperty(l->dialect(), said.str());
    EXPECT_GE(sum_of(of_each.first(2)) * 2 * 3, all) << l->dialect() << ": " << said.str();
    EXPECT_GE(sum_of(of_each.last(2)) * 2 * 3, all) << l->dialect() << ": " << said.str();
    const int at_least = l->dialect() == "redisson" ? 3 : 12;
    for (const int t : turns) {
      EXPECT_GE(t * 4 * at_least, all) << l->dialect() << ": " << said.str();
    }
  }
}

}  // namespace
}  // namespace interop_test
