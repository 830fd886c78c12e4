#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "harness/next_wake.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// Asynchronous readers share one hold with readers that block a thread.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::lease;
using holdfast::result;
using holdfast::shared_mutex;
using holdfast::engine::hold;
using holdfast::engine::reader_group;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;
using held_future = std::future<result<lease>>;

held_future read(shared_mutex& m, holdfast::wait_limit limit = {}, std::stop_token stop = {}) {
  return async_acquire_shared(m, limit, std::move(stop)).future();
}
held_future write(shared_mutex& m, holdfast::wait_limit limit = {}, std::stop_token stop = {}) {
  return async_acquire(m, limit, std::move(stop)).future();
}

errc why(held_future& f) {
  const auto r = f.get();
  return r ? errc::internal : r.error().code;
}
bool is_ready(const held_future& f) { return f.wait_for(0s) == std::future_status::ready; }

std::size_t holders(const holdfast::session& s) { return s.show("m").holders.size(); }

/// Plays another process that writes.
struct with_writer : stage {
  explicit with_writer(const std::string& url)
      : stage(url), other(holdfast::open(url, options())), theirs(other, "m") {}
  holdfast::session other;
  shared_mutex theirs;
};

TEST(async_readers, ask_the_store_once_whether_they_have_threads_or_not) {
  stage s;
  shared_mutex m{s.session, "m"};
  {
    std::vector<lease> readers;
    for (int i = 0; i < 20; ++i) {
      readers.push_back(read(m).get().value());
      readers.push_back(m.acquire_shared());
    }
    EXPECT_EQ(s.script->count(verb::acquire), 1U);
    EXPECT_EQ(holders(s.session), 1U);
    for (const auto& r : readers) EXPECT_EQ(r.fence(), readers.front().fence());
  }
  EXPECT_EQ(s.script->count(verb::release), 1U) << "the last one gave it back";
}

TEST(async_readers, wait_for_the_answer_to_a_thread_that_asked_before) {
  stage s;
  shared_mutex m{s.session, "m"};
  s.script->hang(verb::acquire);
  std::thread first([&] { EXPECT_TRUE(m.acquire_shared()); });
  s.script->await(verb::acquire, 1);
  std::vector<held_future> others;
  for (int i = 0; i < 8; ++i) others.push_back(read(m));
  s.script->let_go();
  for (auto& o : others) EXPECT_TRUE(o.get());
  first.join();
}

TEST(async_readers, let_threads_wait_for_their_answer) {
  with_writer s("memory:areaders1");
  shared_mutex m{s.session, "m"};
  lease writer = s.theirs.acquire();
  auto first = read(m);
  s.await_waiters("m", 1);
  std::atomic<int> inside{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      EXPECT_TRUE(m.acquire_shared());
      ++inside;
    });
  }
  EXPECT_FALSE(writer.release());
  const auto held = first.get();
  for (auto& t : others) t.join();
  EXPECT_EQ(holders(s.session), 1U);
}

TEST(async_readers, do_not_pass_a_writer_of_their_process) {
  stage s;
  shared_mutex m{s.session, "m"};
  lease reader = read(m).get().value();
  auto writer = write(m);
  s.await_waiters("m", 1);
  auto tries = read(m, 0s);
  EXPECT_EQ(why(tries), errc::busy);
  EXPECT_FALSE(m.try_acquire_shared()) << "nor does one that has a thread";
  EXPECT_FALSE(reader.release());
  EXPECT_FALSE(writer.get().value().release());
  EXPECT_TRUE(read(m, 0s).get());
}

TEST(async_readers, know_of_a_writer_of_their_process_without_a_notification) {
  stage s;
  shared_mutex m{s.session, "m"};
  const lease reader = read(m).get().value();
  s.script->set(verb::acquire, fault::drop_notification);
  const auto writer = write(m);
  s.await_waiters("m", 1);
  auto tries = read(m, 0s);
  EXPECT_EQ(why(tries), errc::busy);
}

TEST(async_readers, do_not_pass_a_writer_of_another_process_once_it_is_known) {
  with_writer s("memory:areaders2");
  shared_mutex m{s.session, "m"};
  lease reader = read(m).get().value();
  auto writer = write(s.theirs);
  s.await_waiters("m", 1);
  harness::eventually("the notice is there", [&] { return !read(m, 0s).get(); });
  EXPECT_FALSE(reader.release());
  EXPECT_TRUE(writer.get());
}

struct probe final : holdfast::engine::waker {
  void wake() noexcept override {}
};

/// Waits until this many readers wait behind the one that asks for all: then one more is refused.
void await_readers(const std::shared_ptr<reader_group>& at, const lease& like, unsigned n) {
  auto few = *hold::behind(like)->what();
  few.max_waiters = n;
  harness::eventually("readers", [&] {
    probe who;
    reader_group::visit visit(at, who);
    return visit.look(few, false, true) == reader_group::visit::way::overloaded;
  });
}

// The notification comes, and the first reader has left, before any receiver or thread of the
// others runs.
TEST(async_readers, that_waited_at_the_grant_enter_before_a_writer_that_comes_later) {
  with_writer s("memory:areaders8");
  shared_mutex m{s.session, "m"};
  const auto group = s.session.impl()->reader_groups().at("m");
  lease writer = s.theirs.acquire();
  std::promise<std::uint64_t> fence;
  async_acquire_shared(m, {}, {}).start([&](result<lease> first) {
    group->wanted(first->fence());
    fence.set_value(first->fence());
    EXPECT_FALSE(first->release());
  });
  s.await_waiters("m", 1);
  auto second = read(m);
  std::uint64_t third = 0, fourth = 0;
  std::thread waits([&] { third = m.acquire_shared().fence(); });
  std::thread waits_for_a_time([&] { fourth = m.try_acquire_shared_for(1h).value().fence(); });
  await_readers(group, writer, 3);
  EXPECT_FALSE(writer.release());
  const auto first = fence.get_future().get();
  EXPECT_EQ(second.get().value().fence(), first);
  waits.join();
  waits_for_a_time.join();
  EXPECT_EQ(third, first);
  EXPECT_EQ(fourth, first);
}

TEST(async_readers, join_again_when_a_writer_has_given_up) {
  stage s;
  shared_mutex m{s.session, "m"};
  const lease reader = read(m).get().value();
  std::stop_source stop;
  auto writer = write(m, {}, stop.get_token());
  s.await_waiters("m", 1);
  stop.request_stop();
  EXPECT_EQ(why(writer), errc::cancelled);
  EXPECT_TRUE(read(m, 0s).get());
  EXPECT_EQ(holders(s.session), 1U);
}

TEST(async_readers, that_give_up_do_not_disturb_other_waiters) {
  with_writer s("memory:areaders3");
  shared_mutex m{s.session, "m"};
  lease writer = s.theirs.acquire();
  std::stop_source stop_first, stop_third;
  auto first = read(m, {}, stop_first.get_token());
  s.await_waiters("m", 1);
  auto second = read(m), third = read(m, {}, stop_third.get_token()), fourth = read(m, 10s);
  stop_first.request_stop();
  stop_third.request_stop();
  EXPECT_EQ(why(first), errc::cancelled);
  EXPECT_EQ(why(third), errc::cancelled);
  s.await_waiters("m", 1);
  EXPECT_FALSE(writer.release());
  const auto held = second.get();
  EXPECT_TRUE(fourth.get());
  EXPECT_EQ(holders(s.session), 1U);
}

TEST(async_readers, end_at_their_deadline_and_leave_no_queue_entry) {
  with_writer s("memory:areaders4");
  shared_mutex m{s.session, "m"};
  const lease writer = s.theirs.acquire();
  auto first = read(m, 10s), second = read(m, 20s);
  harness::eventually("the deadlines", [&] {
    harness::pass(*s.clock, 100ms);
    return is_ready(first) && is_ready(second);
  });
  EXPECT_EQ(why(first), errc::timed_out);
  EXPECT_EQ(why(second), errc::timed_out);
  harness::eventually("no place", [&] { return s.session.show("m").waiters.empty(); });
}

TEST(async_readers, are_refused_when_there_are_too_many) {
  with_writer s("memory:areaders5");
  holdfast::shared_mutex_options few;
  few.max_waiters = 1;
  shared_mutex m{s.session, "m", few};
  lease writer = s.theirs.acquire();
  auto asks = read(m);
  s.await_waiters("m", 1);
  auto waits = read(m), shed = read(m);
  EXPECT_EQ(why(shed), errc::overloaded);
  EXPECT_EQ(s.seen->count(holdfast::event_kind::gave_up), 1U);
  EXPECT_THROW((void)m.acquire_shared(), holdfast::error);
  EXPECT_EQ(s.seen->count(holdfast::event_kind::gave_up), 2U) << "with a thread, too";
  EXPECT_FALSE(writer.release());
  EXPECT_TRUE(asks.get());
  EXPECT_TRUE(waits.get());
}

TEST(async_readers, end_with_an_error_when_their_session_closes) {
  const auto clock = std::make_shared<holdfast::testing::fake_clock>();
  auto other = holdfast::open("memory:areaders6", {.clock = clock});
  const lease theirs = shared_mutex{other, "m"}.acquire();
  std::vector<held_future> waiting;
  {
    auto session = holdfast::open("memory:areaders6", {.clock = clock});
    shared_mutex m{session, "m"};
    for (int i = 0; i < 10; ++i) waiting.push_back(read(m));
    waiting.push_back(write(m));
    harness::eventually("waiters", [&] { return other.show("m").waiters.size() == 2; });
  }
  for (auto& w : waiting) EXPECT_EQ(why(w), errc::cancelled);
  EXPECT_TRUE(other.show("m").waiters.empty());
}

TEST(async_readers, whose_answer_is_lost_ask_again_for_all) {
  stage s;
  shared_mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_reply);
  auto first = read(m, 60s), second = read(m, 60s);
  s.script->await(verb::acquire, 1);
  s.script->set(verb::acquire, fault::none);
  harness::eventually("granted", [&] {
    harness::pass(*s.clock, 100ms);
    return is_ready(first) && is_ready(second);
  });
  const auto one = first.get(), two = second.get();
  EXPECT_TRUE(one && two);
  EXPECT_EQ(holders(s.session), 1U);
}

TEST(async_readers, a_stop_that_races_with_the_grant_leaves_nothing) {
  auto session = holdfast::open("memory:areaders7"), other = holdfast::open("memory:areaders7");
  shared_mutex m{session, "m"}, theirs{other, "m"};
  for (int i = 0; i < 500; ++i) {
    lease writer = theirs.acquire();
    std::stop_source stop;
    auto first = read(m, {}, stop.get_token()), second = read(m);
    std::thread canceller([&] { stop.request_stop(); });
    EXPECT_FALSE(writer.release());
    canceller.join();
    const auto how = first.get();
    EXPECT_TRUE(how || how.error().code == errc::cancelled);
    EXPECT_TRUE(second.get());
  }
  harness::eventually("nothing is left", [&] {
    const auto info = session.show("m");
    return info.holders.empty() && info.waiters.empty();
  });
}

// ---- changing the mode

TEST(async_modes, only_the_last_reader_becomes_the_writer) {
  stage s;
  shared_mutex m{s.session, "m"};
  lease one = m.acquire_shared(), two = m.acquire_shared();
  EXPECT_FALSE(async_upgrade(m, one).future().get().value());
  EXPECT_FALSE(one.release());
  const auto as_reader = two.fence();
  EXPECT_TRUE(async_upgrade(m, two).future().get().value());
  EXPECT_GT(two.fence(), as_reader);
  EXPECT_FALSE(m.try_acquire_shared());
  EXPECT_TRUE(async_downgrade(m, two).future().get());
  EXPECT_TRUE(m.try_acquire_shared());
}

TEST(async_modes, no_thread_waits_for_the_round_trip) {
  stage s;
  shared_mutex m{s.session, "m"}, n{s.session, "n"};
  const lease one = m.acquire(), two = n.acquire();
  s.script->hang(verb::resize);
  auto first = async_downgrade(m, one).future();
  s.script->await(verb::resize, 1);
  auto second = async_downgrade(n, two).future();
  EXPECT_EQ(second.wait_for(0s), std::future_status::timeout) << "nobody waits for it here";
  s.script->let_go();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
}

TEST(async_modes, the_mode_of_a_lost_or_released_lease_cannot_be_changed) {
  stage s;
  holdfast::shared_mutex_options unrenewed;
  unrenewed.renew = false;
  shared_mutex m{s.session, "m", unrenewed};
  lease held = m.acquire();
  auto later = async_downgrade(m, held);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(std::move(later).future().get().error().code, errc::not_owner);
  EXPECT_THROW((void)async_upgrade(m, held), holdfast::error) << "it is empty now";
  held = m.acquire();
  EXPECT_THROW((void)async_downgrade(*std::make_unique<shared_mutex>(s.session, "n"), held),
               holdfast::error);
  s.clock->advance(31s);
  EXPECT_EQ(async_downgrade(m, held).future().get().error().code, errc::lost);
  s.seen->await(holdfast::event_kind::lost);
}

TEST(async_modes, a_store_that_is_away_is_an_error_and_changes_nothing) {
  stage s;
  shared_mutex m{s.session, "m"};
  const lease held = m.acquire();
  s.script->set(verb::resize, fault::drop_request);
  const auto how = async_downgrade(m, held).future().get();
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, errc::unavailable);
  EXPECT_EQ(how.error().name, "m");
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
}

}  // namespace
