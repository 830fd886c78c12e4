#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "harness/passing_on.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// A release that nobody waits for (lock_options::unconfirmed_release), over a store whose answer to
// it comes when the test wants it.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::failure;
using holdfast::lease;
using holdfast::mutex;
using holdfast::result;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;
using verb = holdfast::store::permits_verb;

/// Requests that were carried out and not answered yet, with their callbacks.
class letterbox {
 public:
  using reply = result<permits_reply>;
  void put(reply answer, std::function<void(reply)> then) {
    const std::lock_guard guard{mutex_};
    letters_.push_back({std::move(answer), std::move(then)});
  }
  /// Delivers the store's answers, or `instead`.
  void deliver(const std::optional<failure>& instead = {}) {
    std::vector<letter> all;
    std::unique_lock lock{mutex_};
    all.swap(letters_);
    lock.unlock();
    for (auto& l : all) l.then(instead ? reply(*instead) : std::move(l.answer));
  }
  std::size_t size() const {
    const std::lock_guard guard{mutex_};
    return letters_.size();
  }
  std::atomic<bool> loses = false;  ///< loses requests
  std::atomic<std::size_t> asked{0};

 private:
  struct letter {
    reply answer;
    std::function<void(reply)> then;
  };
  mutable std::mutex mutex_;
  std::vector<letter> letters_;
};

class taciturn final : public harness::passing_on {
 public:
  taciturn(std::unique_ptr<session_store> inner, std::shared_ptr<letterbox> letters)
      : passing_on(std::move(inner)), letters_(std::move(letters)) {}
  bool permits_later(std::string_view name, const permits_command& c,
                     std::function<void(result<permits_reply>)> then) override {
    if (letters_->loses)
      letters_->put(failure{holdfast::errc::unavailable, "lost on the way", true}, std::move(then));
    else
      letters_->put(inner_->permits(name, c), std::move(then));
    return true;
  }
  void settle() override {
    ++letters_->asked;
    letters_->deliver();
  }

 private:
  const std::shared_ptr<letterbox> letters_;
};

struct unconfirmed : testing::Test {
  holdfast::session_options options() const {
    holdfast::session_options o;
    o.clock = clock;
    o.observer = seen;
    o.decorate = [this](auto inner) {
      return std::make_unique<taciturn>(std::move(inner), letters);
    };
    return o;
  }
  static holdfast::lock_options later() {
    holdfast::lock_options o;
    o.unconfirmed_release = true;
    return o;
  }
  std::size_t holders() const { return session->show("m").holders.size(); }
  std::size_t count(event_kind kind) const { return seen->count(kind); }

  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<recorder> seen = std::make_shared<recorder>();
  std::shared_ptr<letterbox> letters = std::make_shared<letterbox>();
  std::optional<holdfast::session> session = holdfast::open("memory:", options());
  std::optional<mutex> lock{std::in_place, *session, "m", later()};
};

TEST_F(unconfirmed, unlock_does_not_wait_and_the_next_lock_is_sent_after_it) {
  lock->lock();
  lock->unlock();
  EXPECT_EQ(letters->size(), 1U);
  EXPECT_EQ(count(event_kind::released), 0U) << "nobody has said so yet";
  EXPECT_TRUE(lock->try_lock());
  letters->deliver();
  EXPECT_EQ(count(event_kind::released), 1U);
  lock->unlock();
}

TEST_F(unconfirmed, a_lock_counts_as_held_until_unlock_and_not_until_the_answer) {
  struct timekeeper final : holdfast::observer {
    void on_event(const holdfast::event& e) override {
      if (e.kind == event_kind::released) held = e.held;
    }
    std::atomic<std::chrono::nanoseconds> held{};
  };
  auto o = options();
  const auto times = std::make_shared<timekeeper>();
  o.observer = times;
  auto other = holdfast::open("memory:", o);
  mutex m{other, "m", later()};
  m.lock();
  clock->advance(2s);
  m.unlock();
  clock->advance(100ms);
  letters->deliver();
  EXPECT_EQ(times->held.load(), 2s);
}

TEST_F(unconfirmed, a_destroyed_lease_does_not_wait_and_release_does) {
  {
    const lease held = lock->acquire();
  }
  EXPECT_EQ(letters->size(), 1U);
  EXPECT_FALSE(lock->acquire().release());
  EXPECT_EQ(letters->size(), 1U);
}

TEST_F(unconfirmed, without_the_option_unlock_waits) {
  mutex plain{*session, "m"};
  plain.lock();
  plain.unlock();
  EXPECT_EQ(letters->size(), 0U);
  EXPECT_EQ(count(event_kind::released), 1U);
}

TEST_F(unconfirmed, an_unread_answer_is_read_once) {
  lock->lock();
  lock->unlock();
  clock->advance(250ms);
  seen->await(event_kind::released);
  clock->advance(10s);
  EXPECT_EQ(letters->asked, 1U);
}

TEST_F(unconfirmed, a_failed_release_reaches_the_observer_and_is_tried_again) {
  letters->loses = true;
  lock->lock();
  lock->unlock();
  EXPECT_EQ(holders(), 1U);
  letters->deliver();
  EXPECT_EQ(count(event_kind::release_failed), 1U);
  EXPECT_EQ(count(event_kind::released), 0U);
  harness::eventually("released", [&] { return holders() == 0; });
}

TEST_F(unconfirmed, a_release_of_a_lost_lock_reports_the_loss) {
  lock->lock();
  EXPECT_EQ(session->force_release("m"), 1U);
  lock->unlock();
  letters->deliver();
  EXPECT_EQ(count(event_kind::lost), 1U);
  EXPECT_EQ(count(event_kind::released), 0U);
}

TEST_F(unconfirmed, a_waiting_thread_of_the_process_is_queued_with_the_release) {
  auto options = later();
  options.local_time = 0us;
  mutex here{*session, "m", options};
  here.lock();
  std::thread next([&] { here.lock(), here.unlock(); });
  harness::eventually("in line",
                      [&] { return session->impl()->local_queue_of("m")->waiting() == 1; });
  here.unlock();
  next.join();
  EXPECT_EQ(letters->size(), 1U) << "the last one's";
}

TEST_F(unconfirmed, a_closing_session_reads_the_pending_answers) {
  lock->lock();
  lock->unlock();
  lock.reset();
  session.reset();
  EXPECT_EQ(letters->asked, 1U);
  EXPECT_EQ(count(event_kind::released), 1U);
}

}  // namespace
