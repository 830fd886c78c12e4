#include <gtest/gtest.h>

#include <thread>

#include "session/session_impl.hpp"
#include "stage.hpp"

// Readers of one process share one hold at the store.
namespace {

using namespace engine_test;
using holdfast::lease;
using holdfast::preference;
using holdfast::shared_mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

std::size_t holders(const holdfast::session& s) { return s.show("m").holders.size(); }

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

TEST(reader_group, readers_that_come_while_the_first_one_asks_wait_for_its_answer) {
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

TEST(reader_group, a_loss_reaches_all_of_them) {
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

TEST(reader_group, what_limits_one_reader_is_its_own) {
  stage s;
  holdfast::shared_mutex_options limited;
  limited.max_hold = 1h;
  shared_mutex m{s.session, "m", limited};
  const lease one = m.acquire_shared(), two = m.acquire_shared();
  EXPECT_EQ(holders(s.session), 2U);
}

TEST(reader_group, a_reader_that_gives_up_leaves_the_others_waiting_in_peace) {
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

}  // namespace
