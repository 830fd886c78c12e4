#include <atomic>
#include <thread>

#include "fixture.hpp"
#include "harness/fault_proxy.hpp"

// A release whose answer nobody waits for: its fate when the answer, or the release itself, is
// lost, and when the server refuses it.
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::relay;
using harness::way;
using holdfast::event_kind;

class redis_unconfirmed : public testing::Test {
 protected:
  holdfast::session open(const std::string& url) const {
    holdfast::session_options o;
    o.observer = seen_;
    return holdfast::open(url, o);
  }
  static holdfast::lock_options later() {
    holdfast::lock_options o;
    o.unconfirmed_release = true;
    return o;
  }
  bool has_no_holder() { return direct_.show("m").holders.empty(); }
  void until_free() {
    eventually("the release to be repeated", [&] { return has_no_holder(); });
  }

  std::shared_ptr<redis_test::listener> seen_ = std::make_shared<redis_test::listener>();
  harness::redis_server server_;
  harness::fault_proxy proxy_{server_.port()};
  holdfast::session direct_ = holdfast::open(server_.url());
  holdfast::session s_ =
      open("redis://127.0.0.1:" + std::to_string(proxy_.port()) + "?command_timeout=60s");
  holdfast::mutex m_{s_, "m", later()};
};

TEST_F(redis_unconfirmed, unlock_returns_while_the_server_is_stopped) {
  m_.lock();
  server_.stop();
  m_.unlock();
  EXPECT_FALSE(seen_->saw(event_kind::released));
  EXPECT_FALSE(seen_->saw(event_kind::release_failed));
  server_.resume();
  eventually("the answer", [&] { return seen_->saw(event_kind::released); });
  EXPECT_TRUE(has_no_holder());
}

TEST_F(redis_unconfirmed, a_release_whose_answer_is_lost_is_reported_as_failed_but_done) {
  m_.lock();
  proxy_.with([](relay& r) { r.cut_after(way::down, 0); });
  m_.unlock();
  eventually("the failure", [&] { return seen_->saw(event_kind::release_failed); });
  until_free();
  EXPECT_FALSE(seen_->saw(event_kind::lost));
}

TEST_F(redis_unconfirmed, a_release_that_never_arrived_is_reported_as_failed_and_repeated) {
  m_.lock();
  proxy_.with([](relay& r) { r.stall(way::up); });
  m_.unlock();
  EXPECT_FALSE(has_no_holder());
  proxy_.cut();
  proxy_.heal();
  eventually("the failure", [&] { return seen_->saw(event_kind::release_failed); });
  until_free();
  EXPECT_TRUE(m_.try_lock());
}

TEST_F(redis_unconfirmed, a_release_that_the_server_refuses_is_reported_as_failed_and_repeated) {
  m_.lock();
  server_.ask({"SCRIPT", "FLUSH"});
  m_.unlock();
  eventually("the refusal", [&] { return seen_->saw(event_kind::release_failed); });
  EXPECT_TRUE(redis_test::contains(seen_->details(), "NOSCRIPT")) << seen_->details();
  until_free();
}

TEST_F(redis_unconfirmed, more_releases_than_may_be_unanswered_are_all_carried_out) {
  std::vector<holdfast::lease> held;
  for (int i = 0; i < 1'500; ++i)
    held.push_back(holdfast::mutex(s_, "m" + std::to_string(i), later()).acquire());
  server_.stop();
  std::thread letting_go([&] { held.clear(); });  // the last third waits for the server
  server_.resume();
  letting_go.join();
  eventually("all gone", [&] { return direct_.names().empty(); });
}

TEST_F(redis_unconfirmed, a_waiter_elsewhere_is_served_by_it) {
  m_.lock();
  holdfast::mutex other{direct_, "m"};
  std::thread waiter([&] { other.lock(), other.unlock(); });
  eventually("a waiter", [&] { return direct_.show("m").waiters.size() == 1; });
  m_.unlock();
  waiter.join();
}

TEST_F(redis_unconfirmed, an_observer_may_lock_something_else_on_the_same_connection) {
  struct busy final : holdfast::observer {
    void on_event(const holdfast::event& e) override {
      if (e.kind != event_kind::released || e.name != "m") return;
      other->lock();
      other->unlock();
      ++told;
    }
    holdfast::mutex* other = nullptr;
    std::atomic<int> told{0};
  };
  const auto observer = std::make_shared<busy>();
  holdfast::session_options o;
  o.observer = observer;
  auto s = holdfast::open(server_.url(), o);
  holdfast::mutex m{s, "m", later()}, other{s, "other", later()};
  observer->other = &other;
  for (int i = 0; i < 10; ++i) m.lock(), m.unlock();
  eventually("all are told", [&] { return observer->told == 10; });
}

}  // namespace
