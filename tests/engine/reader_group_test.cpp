#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "harness/forwarding_clock.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// Readers of one process share one hold at the store.
namespace {

using namespace engine_test;
using holdfast::boot_time;
using holdfast::lease;
using holdfast::preference;
using holdfast::shared_mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

std::size_t holders(const holdfast::session& s) { return s.show("m").holders.size(); }

/// A reader that polls only when the test wants it: as late as a thread may be.
struct late_reader final : holdfast::engine::waker {
  using way = holdfast::engine::reader_group::visit::way;
  explicit late_reader(std::shared_ptr<holdfast::engine::reader_group> at)
      : visit(std::move(at), *this) {}
  void wake() noexcept override { ++woken; }
  way look(const lease& like, bool may_wait = true) {
    return visit.look(*holdfast::engine::hold::behind(like)->what(), false, may_wait);
  }
  lease take() { return holdfast::engine::hold::joined(visit.take_joined(), {}); }

  int woken = 0;
  holdfast::engine::reader_group::visit visit;
};

/// Its readers come and poll when the test wants it.
struct late_readers : stage {
  using way = late_reader::way;
  using group = holdfast::engine::reader_group;
  /// The store has granted the lock to the reader that asks for all.
  void grant(late_reader& to) { to.visit.share(holdfast::engine::hold::shared_behind(granted)); }
  void is_wanted_elsewhere() { at->wanted(granted.fence()); }

  shared_mutex m{session, "m"};
  lease granted = m.acquire_shared();
  std::shared_ptr<group> at = std::make_shared<group>();
};

TEST(reader_group, readers_of_a_process_ask_the_store_once) {
  stage s;
  shared_mutex m{s.session, "m"};
  shared_mutex same{s.session, "m"};
  const auto before = s.session.store_operations();
  {
    std::vector<lease> readers;
    for (int i = 0; i < 50; ++i) readers.push_back((i % 2 == 0 ? m : same).acquire_shared());
    EXPECT_EQ(s.session.store_operations() - before, 1U);
    EXPECT_EQ(holders(s.session), 1U);
    for (auto& r : readers) {
      EXPECT_EQ(holders(s.session), 1U);
      EXPECT_FALSE(r.release());
    }
  }
  EXPECT_EQ(holders(s.session), 0U);
  EXPECT_EQ(s.script->count(verb::release), 1U) << "the last one gave it back";
}

TEST(reader_group, a_reader_that_is_already_stopped_does_not_join_the_others) {
  stage s;
  shared_mutex m{s.session, "m"};
  const lease first = m.acquire_shared();
  std::stop_source source;
  source.request_stop();
  const auto stop = source.get_token();
  EXPECT_FALSE(m.lock_shared(stop));
  EXPECT_FALSE(m.try_acquire_shared_for(1s, stop));
  auto later = async_acquire_shared(m, {}, stop).future();
  EXPECT_EQ(later.get().error().code, holdfast::errc::cancelled);
}

TEST(reader_group, readers_that_come_during_the_request_of_the_first_wait_for_its_answer) {
  stage s;
  shared_mutex m{s.session, "m"};
  s.script->hang(verb::acquire);
  std::vector<std::thread> readers;
  std::atomic<int> inside{0};
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      const lease held = m.acquire_shared();
      ++inside;
      while (inside < 8) std::this_thread::yield();
    });
  }
  s.script->await(verb::acquire, 1);
  s.script->let_go();
  for (auto& t : readers) t.join();
  EXPECT_EQ(s.script->count(verb::acquire), 1U);
}

TEST(reader_group, a_reader_does_not_pass_a_writer_of_its_process) {
  stage s;
  shared_mutex m{s.session, "m"};
  lease reader = m.acquire_shared();
  std::thread writer([&] { (void)m.acquire(); });
  s.await_waiters("m", 1);
  EXPECT_FALSE(m.try_acquire_shared());
  EXPECT_FALSE(reader.release());
  writer.join();
  EXPECT_TRUE(m.try_acquire_shared());
}

TEST(reader_group, a_reader_does_not_pass_a_writer_of_another_process_once_it_is_known) {
  stage s("memory:group1");
  auto other = holdfast::open("memory:group1", s.options());
  shared_mutex m{s.session, "m"}, theirs{other, "m"};
  lease reader = m.acquire_shared();
  std::thread writer([&] { (void)theirs.acquire(); });
  s.await_waiters("m", 1);
  harness::eventually("the notice is there", [&] { return !m.try_acquire_shared(); });
  EXPECT_FALSE(m.try_acquire_shared());
  EXPECT_FALSE(reader.release());
  writer.join();
}

TEST(reader_group, readers_that_are_preferred_join_though_a_writer_waits) {
  stage s;
  holdfast::shared_mutex_options first;
  first.preference = preference::reader;
  shared_mutex m{s.session, "m", first};
  lease reader = m.acquire_shared();
  std::thread writer([&] { (void)m.acquire(); });
  s.await_waiters("m", 1);
  EXPECT_TRUE(m.try_acquire_shared());
  EXPECT_FALSE(reader.release());
  writer.join();
}

TEST(reader_group, writers_are_not_starved_by_readers_that_never_all_leave) {
  stage s("memory:group2");
  auto other = holdfast::open("memory:group2", s.options());
  shared_mutex m{s.session, "m"}, theirs{other, "m"};
  std::atomic<bool> written{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      lease held = m.acquire_shared();
      while (!written) {
        auto next = m.try_acquire_shared();
        (void)held.release();
        held = next ? std::move(*next) : m.acquire_shared();
      }
    });
  }
  (void)theirs.acquire();
  written = true;
  for (auto& t : readers) t.join();
}

TEST(reader_group, only_the_last_reader_may_become_the_writer) {
  stage s;
  shared_mutex m{s.session, "m"};
  lease one = m.acquire_shared(), two = m.acquire_shared();
  EXPECT_FALSE(m.try_upgrade(one));
  EXPECT_FALSE(one.release());
  const auto as_reader = two.fence();
  EXPECT_TRUE(m.try_upgrade(two));
  EXPECT_GT(two.fence(), as_reader);
  EXPECT_FALSE(m.try_acquire_shared()) << "nobody joins a writer";
  m.downgrade(two);
  EXPECT_TRUE(m.try_acquire_shared());
}

TEST(reader_group, a_loss_is_reported_to_all_readers) {
  stage s;
  shared_mutex m{s.session, "m"};
  lease one = m.acquire_shared(), two = m.acquire_shared();
  const auto told_one = one.lost(), told_two = two.lost();
  s.script->set(verb::renew, fault::drop_request);
  s.clock->advance(31s);
  s.seen->await(holdfast::event_kind::lost);
  EXPECT_EQ(s.seen->leases_lost(), 2U);
  EXPECT_TRUE(told_one.stop_requested());
  EXPECT_TRUE(told_two.stop_requested());
  EXPECT_EQ(one.release(), holdfast::errc::lost);
  EXPECT_EQ(two.release(), holdfast::errc::lost);
  EXPECT_TRUE(m.acquire_shared()) << "nobody joins what is lost";
}

TEST(reader_group, a_reader_with_max_hold_gets_a_hold_of_its_own) {
  stage s;
  holdfast::shared_mutex_options limited;
  limited.max_hold = 1h;
  shared_mutex m{s.session, "m", limited};
  const lease one = m.acquire_shared(), two = m.acquire_shared();
  EXPECT_EQ(holders(s.session), 2U);
}

TEST(reader_group, a_reader_that_gives_up_does_not_disturb_other_waiters) {
  stage s("memory:group3");
  auto other = holdfast::open("memory:group3", s.options());
  shared_mutex m{s.session, "m"}, theirs{other, "m"};
  lease writer = theirs.acquire();
  std::stop_source stop;
  std::thread first([&] { EXPECT_FALSE(m.try_acquire_shared_for(1h, stop.get_token())); });
  s.await_waiters("m", 1);
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) others.emplace_back([&] { EXPECT_TRUE(m.acquire_shared()); });
  stop.request_stop();
  first.join();
  s.await_waiters("m", 1);
  EXPECT_FALSE(writer.release());
  for (auto& t : others) t.join();
}

TEST(reader_group, a_waiter_at_the_grant_enters_before_a_writer_that_comes_later) {
  late_readers s;
  late_reader first(s.at), second(s.at), later(s.at);
  ASSERT_EQ(first.look(s.granted), late_reader::way::asks);
  ASSERT_EQ(second.look(s.granted), late_reader::way::waits);
  s.grant(first);
  s.is_wanted_elsewhere();
  EXPECT_EQ(second.woken, 1);
  EXPECT_EQ(later.look(s.granted), late_reader::way::asks) << "behind the writer";
  ASSERT_EQ(second.look(s.granted, false), late_reader::way::joined) << "also at its deadline";
  EXPECT_EQ(second.take().fence(), s.granted.fence());
}

TEST(reader_group, a_writer_elsewhere_is_not_overtaken_at_any_hold_that_blocks_it) {
  stage s;
  shared_mutex m{s.session, "m"};
  const auto group = s.session.impl()->reader_groups().at("m");
  const lease first = m.acquire_shared();
  group->wanted(first.fence());
  const lease second = m.acquire_shared(), with_it = m.acquire_shared();
  EXPECT_EQ(holders(s.session), 2U) << "the writer did not wait for the second one";
  group->wanted(second.fence());
  group->wanted(first.fence());
  const lease third = m.acquire_shared();
  EXPECT_EQ(holders(s.session), 3U);
}

TEST(reader_group, a_waiter_at_the_grant_keeps_it_though_all_others_leave) {
  late_readers s;
  const std::string name = s.granted.name();
  late_reader first(s.at), second(s.at);
  (void)first.look(s.granted);
  (void)second.look(s.granted);
  s.grant(first);
  const auto like = holdfast::engine::hold::shared_behind(s.granted);
  EXPECT_FALSE(s.granted.release());
  EXPECT_EQ(s.script->count(verb::release), 0U);
  ASSERT_EQ(second.visit.look(*like->what(), false, true), late_reader::way::joined);
  EXPECT_FALSE(second.take().release());
  EXPECT_EQ(s.script->count(verb::release), 1U) << "the last one gave it back";
}

/// The numbers from which `holdfast_held` is computed: nobody holds it any more.
void expect_balanced(const recorder& seen) {
  using holdfast::event_kind;
  EXPECT_EQ(seen.count(event_kind::acquired),
            seen.count(event_kind::released) + seen.leases_lost());
}

TEST(reader_group, a_granted_reader_that_never_wakes_is_counted_and_discounted) {
  for (const bool lost : {false, true}) {
    SCOPED_TRACE(lost);
    late_readers s;
    {
      late_reader asks(s.at), waits(s.at);
      ASSERT_EQ(asks.look(s.granted), late_readers::way::asks);
      ASSERT_EQ(waits.look(s.granted), late_readers::way::waits);
      s.grant(asks);
      if (lost) {
        s.script->set(verb::renew, fault::drop_request);
        s.clock->advance(31s);
        s.seen->await(holdfast::event_kind::lost);
      }
    }
    (void)s.granted.release();
    expect_balanced(*s.seen);
  }
}

/// Calls a function on the thread that called interrupt_after(), when that thread asks for the time
/// for the n-th time from then on.
class interrupting_clock final : public harness::forwarding_clock {
 public:
  explicit interrupting_clock(std::shared_ptr<holdfast::testing::fake_clock> on)
      : forwarding_clock(*on), kept_(std::move(on)) {}
  void interrupt_after(int n, std::function<void()> by) {
    left_ = n;
    by_ = std::move(by);
    thread_ = std::this_thread::get_id();
  }
  /// Whether the function was called; it is not called any more.
  bool end() {
    thread_ = std::thread::id{};
    return left_ < 0;
  }

  boot_time now() const noexcept override {
    if (std::this_thread::get_id() == thread_.load() && left_-- == 0) by_();
    return forwarding_clock::now();
  }

 private:
  const std::shared_ptr<holdfast::testing::fake_clock> kept_;
  mutable int left_ = 0;
  std::function<void()> by_{};
  std::atomic<std::thread::id> thread_{};
};

TEST(reader_group, a_reader_that_leaves_at_the_moment_of_a_loss_is_counted_out_once) {
  bool interrupted = true;
  for (int n = 0; interrupted; ++n) {
    SCOPED_TRACE(n);
    stage s;
    const auto clock = std::make_shared<interrupting_clock>(s.clock);
    auto o = s.options();
    o.clock = clock;
    shared_mutex m{holdfast::open("memory:", o), "m"};
    lease first = m.acquire_shared(), second = m.acquire_shared();
    s.script->set(verb::renew, fault::drop_request);
    clock->interrupt_after(n, [&] {
      s.clock->advance(31s);
      s.seen->await(holdfast::event_kind::lost);
    });
    (void)second.release();
    interrupted = clock->end();
    (void)first.release();
    expect_balanced(*s.seen);
  }
}

TEST(reader_group, a_reader_that_was_granted_and_stopped_waiting_releases) {
  late_readers s;
  late_reader first(s.at);
  {
    late_reader second(s.at);
    (void)first.look(s.granted);
    (void)second.look(s.granted);
    s.grant(first);
    EXPECT_FALSE(s.m.try_upgrade(s.granted)) << "two have it";
  }
  EXPECT_TRUE(s.m.try_upgrade(s.granted));
}

TEST(reader_group, a_granted_reader_requests_again_after_the_loss_of_the_hold) {
  late_readers s;
  late_reader first(s.at), second(s.at);
  (void)first.look(s.granted);
  (void)second.look(s.granted);
  s.grant(first);
  s.script->set(verb::renew, fault::drop_request);
  s.clock->advance(31s);
  s.seen->await(holdfast::event_kind::lost);
  EXPECT_EQ(second.look(s.granted), late_reader::way::asks);
  EXPECT_EQ(s.granted.release(), holdfast::errc::lost);
}

TEST(reader_group, a_writer_of_its_process_is_passed_only_by_earlier_readers) {
  late_readers s;
  late_reader first(s.at), before(s.at), after(s.at);
  (void)first.look(s.granted);
  (void)before.look(s.granted);
  const late_readers::group::writer writer(*s.at);
  (void)after.look(s.granted);
  s.grant(first);
  EXPECT_EQ(after.look(s.granted), late_reader::way::asks);
  EXPECT_EQ(before.look(s.granted), late_reader::way::joined);
}

// Otherwise it would be queued behind writers that came later, as often as other readers come
// first.
TEST(reader_group, the_longest_waiter_requests_when_the_first_gives_up) {
  late_readers s;
  late_reader first(s.at), third(s.at), later(s.at);
  (void)first.look(s.granted);
  {
    late_reader second(s.at);
    ASSERT_EQ(second.look(s.granted), late_reader::way::waits);
    ASSERT_EQ(third.look(s.granted), late_reader::way::waits);
    first.visit.leave();
    EXPECT_EQ(third.look(s.granted), late_reader::way::waits);
    EXPECT_EQ(later.look(s.granted), late_reader::way::waits);
    EXPECT_EQ(second.look(s.granted), late_reader::way::asks);
  }
  EXPECT_EQ(later.look(s.granted), late_reader::way::waits) << "the second one gave up, too";
  ASSERT_EQ(third.look(s.granted), late_reader::way::asks);
  s.grant(third);
  EXPECT_EQ(later.look(s.granted), late_reader::way::joined);
}

TEST(reader_group, a_reader_whose_turn_it_is_to_ask_joins_and_passes_the_turn_on) {
  late_readers s;
  late_reader first(s.at), second(s.at), third(s.at);
  (void)first.look(s.granted);
  {
    const late_readers::group::writer gives_up(*s.at);
    (void)second.look(s.granted);
    (void)third.look(s.granted);
    s.grant(first);
  }
  EXPECT_EQ(second.look(s.granted), late_reader::way::joined);
  EXPECT_EQ(third.woken, 1);
  EXPECT_EQ(third.look(s.granted), late_reader::way::joined);
  late_reader later(s.at);
  s.is_wanted_elsewhere();
  EXPECT_EQ(later.look(s.granted), late_reader::way::asks) << "nobody has the turn";
}

TEST(reader_group, writers_of_its_process_that_come_again_and_again_do_not_pass_a_reader_twice) {
  late_readers s;
  late_reader first(s.at), second(s.at), third(s.at);
  (void)first.look(s.granted);
  std::optional<late_readers::group::writer> writer(*s.at);
  (void)second.look(s.granted);
  (void)third.look(s.granted);
  s.grant(first);
  ASSERT_EQ(second.look(s.granted), late_reader::way::asks) << "behind the writer, for all";
  writer.reset();
  writer.emplace(*s.at);
  ASSERT_EQ(third.look(s.granted), late_reader::way::waits);
  s.grant(second);
  EXPECT_EQ(third.look(s.granted), late_reader::way::joined) << "it came before this writer";
}

}  // namespace
