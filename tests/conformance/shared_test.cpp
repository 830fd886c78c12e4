#include <barrier>
#include <shared_mutex>
#include <stop_token>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"
#include "harness/history.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::preference;
using holdfast::shared_mutex;

class sharing : public suite {
 protected:
  shared_mutex lock_{here_, name_, {of_row(), {}}};
  shared_mutex rival_{another(), name_, {of_row(), {}}};
};

INSTANTIATE_TEST_SUITE_P(stores, sharing, testing::ValuesIn(cells({"shared_mutex"})), cell_name);

TEST_P(sharing, a_writer_enters_only_after_all_readers_have_left) {
  lease one = lock_.acquire_shared();
  lease two = rival_.acquire_shared();
  EXPECT_NE(one.fence(), two.fence());
  EXPECT_FALSE(rival_.try_acquire());
  (void)one.release();
  EXPECT_FALSE(rival_.try_acquire());
  (void)two.release();
  const auto writer = rival_.try_acquire();
  ASSERT_TRUE(writer);
  EXPECT_FALSE(lock_.try_acquire());
  EXPECT_FALSE(lock_.try_acquire_shared());
  EXPECT_FALSE(lock_.try_acquire_shared_for(10ms));
}

TEST_P(sharing, a_writer_s_fence_is_greater_than_that_of_every_reader_before_it) {
  std::uint64_t greatest = 0;
  for (int i = 0; i < 5; ++i) greatest = std::max(greatest, lock_.acquire_shared().fence());
  EXPECT_GT(rival_.acquire().fence(), greatest);
}

TEST_P(sharing, with_fifo_a_waiting_writer_enters_before_later_readers) {
  lease reader = lock_.acquire_shared();
  std::atomic<bool> wrote{false};
  std::thread writer([&] {
    const lease held = rival_.acquire();
    wrote = true;
  });
  until_waiting(1);
  // Readers that share a hold learn of the writer by a notification.
  harness::eventually("later readers wait", [&] { return !lock_.try_acquire_shared(); });
  std::thread late([&] {
    const lease held = lock_.acquire_shared();
    EXPECT_TRUE(wrote);
  });
  until_waiting(2);
  (void)reader.release();
  writer.join();
  late.join();
}

class preferring : public sharing {
 protected:
  holdfast::shared_mutex_options prefer(preference p) const {
    holdfast::shared_mutex_options o;
    o.preference = p;
    return o;
  }
};

INSTANTIATE_TEST_SUITE_P(stores, preferring, testing::ValuesIn(cells({"preferring_shared_mutex"})),
                         cell_name);

TEST_P(preferring, reader_preference_lets_readers_pass_waiting_writers) {
  shared_mutex readers{another(), name_, prefer(preference::reader)};
  lease first = readers.acquire_shared();
  std::thread writer([&] { (void)rival_.acquire(); });
  until_waiting(1);
  EXPECT_TRUE(readers.try_acquire_shared());
  (void)first.release();
  writer.join();
}

TEST_P(preferring, writer_preference_lets_writers_pass_waiting_readers) {
  shared_mutex writers{another(), name_, prefer(preference::writer)};
  shared_mutex third{another(), name_};
  lease first = lock_.acquire();
  std::atomic<bool> wrote{false};
  std::thread reader([&] {
    const lease held = rival_.acquire_shared();
    EXPECT_TRUE(wrote);
  });
  until_waiting(1);
  std::thread writer([&] {
    const lease held = writers.acquire();
    wrote = true;
  });
  until_waiting(2);
  (void)first.release();
  reader.join();
  writer.join();
}

TEST_P(sharing, a_downgrade_wakes_waiting_readers_and_keeps_the_fence) {
  lease held = lock_.acquire();
  const auto fence = held.fence();
  std::thread reader([&] { EXPECT_TRUE(rival_.acquire_shared()); });
  until_waiting(1);
  lock_.downgrade(held);
  reader.join();
  EXPECT_EQ(held.fence(), fence);
  EXPECT_FALSE(rival_.try_acquire());
  EXPECT_NO_THROW(held.check());
}

TEST_P(sharing, a_waiting_writer_does_not_slip_in_at_a_downgrade) {
  lease held = lock_.acquire();
  std::atomic<bool> wrote{false};
  std::thread writer([&] {
    const lease mine = rival_.acquire();
    wrote = true;
  });
  until_waiting(1);
  lock_.downgrade(held);
  EXPECT_EQ(waiters(), 1u);
  EXPECT_EQ(holders(), 1u);
  EXPECT_FALSE(wrote);
  EXPECT_NO_THROW(held.check());
  (void)held.release();
  writer.join();
}

TEST_P(sharing, a_downgrade_succeeds_while_a_writer_waits) {
  lease held = lock_.acquire();
  std::stop_source stop;
  auto writer = async_acquire(rival_, {}, stop.get_token()).future();
  until_waiting(1);
  lock_.downgrade(held);
  stop.request_stop();
  EXPECT_FALSE(writer.get());
  until_waiting(0);
  EXPECT_TRUE(rival_.try_acquire_shared());
  EXPECT_NO_THROW(held.check());
}

TEST_P(sharing, the_only_reader_becomes_writer_with_a_greater_fence) {
  lease held = lock_.acquire_shared();
  const auto fence = held.fence();
  EXPECT_TRUE(lock_.try_upgrade(held));
  EXPECT_GT(held.fence(), fence);
  EXPECT_FALSE(rival_.try_acquire_shared());
  EXPECT_TRUE(lock_.try_upgrade(held)) << "it is one already";
}

// A reader that becomes the writer while others wait. If the upgrade is refused because of them, it
// stays a reader, and nobody is in beside a writer.
class upgrading_among_waiters : public sharing {
 protected:
  std::jthread waiting_writer(std::stop_token until) {
    std::jthread waits([this, until] {
      EXPECT_EQ(reason_of([&] { (void)rival_.acquire(until); }), errc::cancelled);
    });
    until_waiting(1);
    return waits;
  }
  std::jthread waiting_reader() {
    std::jthread waits([this] {
      const lease mine = third_.acquire_shared();
      EXPECT_FALSE(somebody_writes_) << "a reader came in beside a writer";
    });
    until_waiting(2);
    return waits;
  }
  /// A waiter behind the writer waits until the writer releases.
  void expect_alone(const lease& held) {
    until_waiting(1);
    EXPECT_EQ(holders(), 1U);
    EXPECT_FALSE(shared_mutex(another(), name_, {of_row(), {}}).try_acquire_shared());
    EXPECT_NO_THROW(held.check());
  }

  enum class reader_comes { before_the_upgrade, after_it };
  void upgrade_while_a_writer_gives_up(reader_comes when) {
    lease held = lock_.acquire_shared();
    std::stop_source stop;
    auto writer = waiting_writer(stop.get_token());
    std::jthread reader;
    if (when == reader_comes::before_the_upgrade) reader = waiting_reader();
    somebody_writes_ = lock_.try_upgrade(held);
    if (when == reader_comes::after_it) reader = waiting_reader();
    stop.request_stop();
    writer.join();
    if (somebody_writes_) expect_alone(held);
    somebody_writes_ = false;
    EXPECT_FALSE(held.release());
    reader.join();
    until_free();
  }

  shared_mutex third_{another(), name_, {of_row(), {}}};
  std::atomic<bool> somebody_writes_{false};
};

INSTANTIATE_TEST_SUITE_P(stores, upgrading_among_waiters,
                         testing::ValuesIn(cells({"shared_mutex"})), cell_name);

TEST_P(upgrading_among_waiters, a_writer_stays_alone_when_the_waiters_between_give_up) {
  upgrade_while_a_writer_gives_up(reader_comes::before_the_upgrade);
}

TEST_P(upgrading_among_waiters, a_reader_after_the_upgrade_waits_although_others_give_up) {
  upgrade_while_a_writer_gives_up(reader_comes::after_it);
}

TEST_P(upgrading_among_waiters, a_waiting_writer_gets_a_greater_fence_than_an_upgraded_reader) {
  lease held = lock_.acquire_shared();
  std::uint64_t next = 0;
  std::jthread writer([&] { next = rival_.acquire().fence(); });
  until_waiting(1);
  (void)lock_.try_upgrade(held);
  const auto before = held.fence();
  EXPECT_FALSE(held.release());
  writer.join();
  EXPECT_GT(next, before);
}

TEST_P(sharing, two_readers_that_both_upgrade_are_both_refused_at_once) {
  lease one = lock_.acquire_shared();
  lease two = rival_.acquire_shared();
  EXPECT_FALSE(lock_.try_upgrade(one));
  EXPECT_FALSE(rival_.try_upgrade(two));
  EXPECT_NO_THROW(one.check());
  EXPECT_NO_THROW(two.check());
  (void)two.release();
  EXPECT_TRUE(lock_.try_upgrade(one));
}

TEST_P(sharing, two_readers_that_upgrade_at_once_never_both_become_writers) {
  for (int i = 0; i < 30; ++i) {
    lease one = lock_.acquire_shared();
    lease two = rival_.acquire_shared();
    std::atomic<int> writers{0};
    std::barrier start(2);
    const auto upgrade = [&](shared_mutex& m, lease& held) {
      start.arrive_and_wait();
      if (m.try_upgrade(held)) ++writers;
      (void)held.release();
    };
    std::thread other([&] { upgrade(rival_, two); });
    upgrade(lock_, one);
    other.join();
    EXPECT_LE(writers, 1);
  }
  until_free();
}

TEST_P(sharing, a_loss_is_reported_also_after_a_change_of_mode) {
  shared_mutex lock{here_, name_};
  lease held = lock.acquire_shared();
  const auto lost = held.lost();
  ASSERT_TRUE(lock.try_upgrade(held));
  lock.downgrade(held);
  EXPECT_FALSE(lost.stop_requested());
  held.extend(3s);  // so that it is renewed soon
  EXPECT_EQ(here_.force_release(name_), 1u);
  harness::eventually("the loss is told", [&] { return lost.stop_requested(); });
  EXPECT_EQ(reason_of([&] { lock.downgrade(held); }), errc::lost);
  EXPECT_EQ(reason_of([&] { (void)lock.try_upgrade(held); }), errc::lost);
}

TEST_P(sharing, modes_change_only_for_leases_of_this_lock) {
  shared_mutex other{here_, "other", {of_row(), {}}};
  lease foreign = other.acquire();
  lease none;
  EXPECT_EQ(reason_of([&] { lock_.downgrade(foreign); }), errc::not_owner);
  EXPECT_EQ(reason_of([&] { (void)lock_.try_upgrade(none); }), errc::not_owner);
  EXPECT_EQ(reason_of([&] { lock_.downgrade(); }), errc::not_owner);
  EXPECT_EQ(reason_of([&] { (void)lock_.try_upgrade(); }), errc::not_owner);
  EXPECT_NO_THROW(foreign.check());
}

TEST_P(sharing, a_hold_of_a_thread_is_released_in_its_new_mode) {
  lock_.lock();
  lock_.downgrade();
  EXPECT_TRUE(rival_.try_lock_shared());
  rival_.unlock_shared();
  EXPECT_TRUE(now_had([&] { return lock_.try_upgrade(); }));
  EXPECT_FALSE(rival_.try_lock_shared());
  lock_.unlock();
  lock_.lock_shared();
  EXPECT_FALSE(rival_.try_lock());
  lock_.unlock_shared();
  EXPECT_TRUE(now_had([&] { return rival_.try_lock(); }));
}

TEST_P(sharing, unlocking_in_the_wrong_mode_changes_nothing) {
  lock_.lock_shared();
  lock_.unlock();
  EXPECT_FALSE(rival_.try_lock());
  lock_.unlock_shared();
  EXPECT_TRUE(now_had([&] { return rival_.try_lock(); }));
}

TEST_P(sharing, readers_and_writers_in_a_crowd_never_mix) {
  std::atomic<std::uint64_t> ticks{0};
  std::mutex mutex;
  std::vector<harness::hold_event> history;
  std::vector<std::thread> threads;
  constexpr std::uint32_t all = 1u << 30;
  for (std::uint32_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      shared_mutex lock{i % 2 == 0 ? here_ : another(), name_};
      for (int round = 0; round < 25; ++round) {
        const bool writes = (i + static_cast<unsigned>(round)) % 5 == 0;
        const lease held = writes ? lock.acquire() : lock.acquire_shared();
        const auto begin = ++ticks;
        std::this_thread::yield();
        const std::lock_guard guard{mutex};
        history.push_back({.begin = begin,
                           .end = ++ticks,
                           .worker = i,
                           .fence = held.fence(),
                           .weight = writes ? all : 1});
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(history.size(), 200u);
  const auto wrong = harness::violations(history, {.capacity = all, .readers_share = true});
  EXPECT_TRUE(wrong.empty()) << harness::summary(wrong);
  until_free();
}

}  // namespace
}  // namespace conformance
