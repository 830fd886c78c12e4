#include <gtest/gtest.h>

#include <thread>

#include "session/session_impl.hpp"
#include "stage.hpp"

// A lease that has ended, which no thread of the session has noticed yet: the one that would is
// busy with the observer.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::lease;
using holdfast::lease_state;
using holdfast::mutex;

/// Keeps the thread that tells it of the loss of "bait".
class slow_listener final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    if (e.kind != event_kind::lost || e.name != "bait") return;
    std::unique_lock lock{mutex_};
    listening_ = true;
    changed_.wait(lock, [&] { return let_go_; });
  }
  bool listens() {
    const std::lock_guard guard{mutex_};
    return listening_;
  }
  void let_go() {
    const std::lock_guard guard{mutex_};
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool listening_ = false, let_go_ = false;
};

struct unnoticed_end : testing::Test {
  ~unnoticed_end() override { listener->let_go(); }
  holdfast::session open() const {
    holdfast::session_options o;
    o.clock = clock;
    o.observer = listener;
    o.lease = 30s;
    return holdfast::open("memory:", o);
  }
  void pass_the_lease() {
    clock->advance(1s);
    harness::eventually("it is told of the bait", [&] { return listener->listens(); });
    clock->advance(31s);
  }

  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<slow_listener> listener = std::make_shared<slow_listener>();
  holdfast::session session = open();
  lease bait = mutex(session, "bait", {.lease = 1s, .renew = false}).acquire();
};

TEST_F(unnoticed_end, is_the_end_for_who_looks) {
  mutex m{session, "m"};
  lease held = m.acquire();
  pass_the_lease();
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_THROW(held.check(), holdfast::error);
}

TEST_F(unnoticed_end, is_told_to_who_releases_though_another_of_the_process_waits) {
  mutex m{session, "m", {.local_time = 1h}};
  lease held = m.acquire();
  auto next = async_acquire(m).future();
  harness::eventually(
      "in line", [&] { return session.impl()->local_queues().at("m", *clock)->waiting() == 1; });
  pass_the_lease();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
  const auto got = next.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->state(), lease_state::held);
}

TEST_F(unnoticed_end, of_an_idle_lock_gives_it_to_nobody) {
  mutex m{session, "m", {.linger = 1h}};
  m.lock(), m.unlock();
  pass_the_lease();
  const auto got = m.try_acquire();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->state(), lease_state::held);
}

}  // namespace
