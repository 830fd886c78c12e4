#include <holdfast/store/inbox.hpp>
#include <set>
#include <thread>

#include "harness/passing_on.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// The death of a session in the way, reported by a store that sees it. The clock stands still, so
// no poll finds it out.
namespace {

using namespace engine_test;
using holdfast::fair_mutex;
using holdfast::store::notification;

/// Remembers the watched sessions, and reports a death when the test wants it.
class registrar final : public holdfast::store::inbox {
 public:
  explicit registrar(holdfast::store::inbox& behind) : behind_(behind) {}
  const std::string& peer() const noexcept override { return behind_.peer(); }
  std::optional<notification> receive(holdfast::boot_time until) override {
    if (auto news = take()) return news;
    auto other = behind_.receive(until);
    return other ? std::move(other) : take();
  }
  void interrupt() noexcept override { behind_.interrupt(); }
  std::optional<std::uint64_t> gaps() const noexcept override { return behind_.gaps(); }
  void watch(std::string_view peer) override {
    const std::lock_guard guard{mutex_};
    watched_.emplace(peer);
  }
  void unwatch(std::string_view peer) noexcept override {
    const std::lock_guard guard{mutex_};
    if (const auto at = watched_.find(peer); at != watched_.end()) watched_.erase(at);
  }
  std::size_t watchers(const std::string& peer) const {
    const std::lock_guard guard{mutex_};
    return watched_.count(peer);
  }
  void tell_death(const std::string& peer) {
    {
      const std::lock_guard guard{mutex_};
      notification n;
      n.what = holdfast::store::notification_kind::departed;
      n.peer = peer;
      news_.push_back(std::move(n));
    }
    behind_.interrupt();
  }

 private:
  std::optional<notification> take() {
    const std::lock_guard guard{mutex_};
    if (news_.empty()) return std::nullopt;
    auto first = std::move(news_.front());
    news_.erase(news_.begin());
    return first;
  }

  holdfast::store::inbox& behind_;
  mutable std::mutex mutex_;
  std::multiset<std::string, std::less<>> watched_;
  std::vector<notification> news_;
};

class seeing final : public harness::passing_on {
 public:
  explicit seeing(std::unique_ptr<session_store> inner)
      : passing_on(std::move(inner)), inbox_(inner_->inbox()) {}
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }
  registrar& deaths() noexcept { return inbox_; }

 private:
  registrar inbox_;
};

struct deaths : testing::Test {
  deaths() {
    auto o = s.options();
    o.decorate = [this](auto inner) {
      auto made = std::make_unique<seeing>(std::move(inner));
      box = &made->deaths();
      return made;
    };
    session = std::make_unique<holdfast::session>(holdfast::open("memory:deaths", o));
  }
  /// Another session holds it, and renews nothing.
  void hold(const std::string& name) {
    holdfast::store::permits_command c;
    c.verb = holdfast::store::permits_verb::acquire;
    c.owner = {1, 2};
    c.lease_us = 30'000'000;
    c.peer = other->impl()->peer();
    ASSERT_TRUE(other->impl()->permits(name, c));
  }
  std::jthread waiter(fair_mutex& m) {
    return std::jthread([&](const std::stop_token& stop) {
      if (m.try_acquire_for(1h, stop)) ++acquired;
    });
  }
  void end_other() {
    other.reset();
    box->tell_death(peer);
  }

  stage s;
  registrar* box = nullptr;
  std::unique_ptr<holdfast::session> session;
  std::unique_ptr<holdfast::session> other =
      std::make_unique<holdfast::session>(holdfast::open("memory:deaths", {.clock = s.clock}));
  const std::string peer = other->impl()->peer();
  std::atomic<int> acquired{0};
};

TEST_F(deaths, of_a_holder_make_the_first_waiter_ask_at_once) {
  hold("m");
  fair_mutex m{*session, "m"};
  const auto first = waiter(m);
  harness::eventually("the holder is watched", [&] { return box->watchers(peer) == 1; });
  end_other();
  harness::eventually("acquired", [&] { return acquired == 1; });
}

TEST_F(deaths, notify_all_waiters_behind_the_dead_holder) {
  hold("m"), hold("n");
  fair_mutex m{*session, "m"}, n{*session, "n"};
  const auto first = waiter(m), second = waiter(n);
  harness::eventually("the holder is watched", [&] { return box->watchers(peer) == 2; });
  end_other();
  harness::eventually("both acquired", [&] { return acquired == 2; });
}

TEST_F(deaths, are_not_watched_for_after_the_wait_has_stopped) {
  hold("m");
  fair_mutex m{*session, "m"};
  {
    auto first = waiter(m);
    harness::eventually("the holder is watched", [&] { return box->watchers(peer) == 1; });
  }
  EXPECT_EQ(box->watchers(peer), 0U);
}

}  // namespace
