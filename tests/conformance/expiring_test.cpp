#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::expiring_semaphore;
using holdfast::permit;

class expiring : public suite {
 protected:
  expiring_semaphore two_{here_, name_, 2};
  expiring_semaphore rival_{another(), name_, 2};
};

INSTANTIATE_TEST_SUITE_P(stores, expiring, testing::ValuesIn(cells({"expiring_semaphore"})),
                         cell_name);

TEST_P(expiring, a_permit_has_an_id_a_fence_and_a_lease) {
  const permit p = two_.acquire(1h);
  EXPECT_EQ(p.id.size(), 32u);
  EXPECT_EQ(p.id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_GT(p.fence, 0u);
  EXPECT_EQ(p.lease, 1h);
  const permit q = two_.acquire(1h);
  EXPECT_NE(p.id, q.id);
  EXPECT_GT(q.fence, p.fence);
  EXPECT_EQ(two_.available(), 0u);
  EXPECT_FALSE(two_.try_acquire(1h));
  EXPECT_FALSE(rival_.try_acquire_for(1h, 10ms));
}

TEST_P(expiring, a_session_that_knows_the_id_extends_and_releases) {
  const permit p = two_.acquire(1h);
  EXPECT_TRUE(rival_.try_extend(p.id, 2h));
  EXPECT_GT(here_.show(name_).holders.at(0).expires_in, 90min);
  EXPECT_TRUE(rival_.release(p.id));
  EXPECT_EQ(two_.available(), 2u);
}

TEST_P(expiring, a_released_permit_is_not_released_or_extended_again) {
  const permit p = two_.acquire(1h);
  EXPECT_TRUE(two_.release(p.id));
  const permit next = rival_.acquire(1h);
  EXPECT_FALSE(two_.release(p.id));
  EXPECT_FALSE(two_.try_extend(p.id, 1h));
  EXPECT_EQ(two_.available(), 1u);
  EXPECT_TRUE(rival_.release(next.id));
}

TEST_P(expiring, an_expired_permit_affects_no_other_permit) {
  const permit p = two_.acquire(holdfast::min_lease);
  const permit kept = two_.acquire(1h);
  const permit next = rival_.acquire(1h);
  EXPECT_FALSE(two_.release(p.id));
  EXPECT_FALSE(two_.try_extend(p.id, 1h));
  EXPECT_EQ(two_.available(), 0u);
  EXPECT_GT(next.fence, kept.fence);
}

TEST_P(expiring, a_permit_outlives_the_session_it_was_acquired_on) {
  permit p;
  {
    expiring_semaphore elsewhere{another(), name_, 2};
    p = elsewhere.acquire(1h);
  }
  EXPECT_EQ(two_.available(), 1u);
  EXPECT_TRUE(two_.release(p.id));
}

TEST_P(expiring, a_permit_acquired_after_a_wait_outlives_its_session_too) {
  const permit first = two_.acquire(1h);
  const permit second = two_.acquire(1h);
  permit p;
  std::thread waiter([&] {
    expiring_semaphore elsewhere{another(), name_, 2};
    p = elsewhere.acquire(1h);
  });
  until_waiting(1);
  EXPECT_TRUE(two_.release(first.id));
  waiter.join();
  EXPECT_EQ(two_.available(), 0u);
  EXPECT_GT(p.fence, second.fence);
  EXPECT_GT(here_.show(name_).holders.at(1).expires_in, 30min);
  EXPECT_TRUE(two_.release(p.id));
}

TEST_P(expiring, a_waiter_may_be_cancelled) {
  const permit a = two_.acquire(1h);
  const permit b = two_.acquire(1h);
  std::stop_source stop;
  std::thread waiter([&] {
    EXPECT_EQ(reason_of([&] { (void)rival_.acquire(1h, stop.get_token()); }), errc::cancelled);
  });
  until_waiting(1);
  stop.request_stop();
  waiter.join();
  expect_no_waiters();
}

TEST_P(expiring, it_shares_a_name_with_a_semaphore_of_the_same_capacity) {
  holdfast::semaphore same{here_, name_, 2};
  const auto held = same.acquire(2);
  EXPECT_FALSE(two_.try_acquire(1h));
  expiring_semaphore other{here_, name_, 3};
  EXPECT_EQ(reason_of([&] { (void)other.try_acquire(1h); }), errc::capacity_mismatch);
}

TEST_P(expiring, impossible_leases_and_ids_are_refused_and_change_nothing) {
  const permit p = two_.acquire(1h);
  for (const auto bad : {0ms, -1ms, 99ms, std::chrono::milliseconds(24h * 32),
                         std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    EXPECT_EQ(reason_of([&] { (void)two_.acquire(bad); }), errc::invalid_argument) << bad.count();
    EXPECT_EQ(reason_of([&] { (void)two_.try_acquire(bad); }), errc::invalid_argument);
    EXPECT_EQ(reason_of([&] { (void)two_.try_extend(p.id, bad); }), errc::invalid_argument);
  }
  for (const std::string& bad :
       {std::string(), std::string("x"), p.id + "0", p.id.substr(1), std::string(32, 'g'),
        std::string(32, 'A'), std::string("'; drop table locks; --"), std::string(32, '\0')}) {
    EXPECT_EQ(reason_of([&] { (void)two_.release(bad); }), errc::invalid_argument) << bad;
    EXPECT_EQ(reason_of([&] { (void)two_.try_extend(bad, 1h); }), errc::invalid_argument) << bad;
  }
  EXPECT_EQ(two_.available(), 1u);
}

TEST_P(expiring, a_guessed_id_releases_nothing) {
  const permit p = two_.acquire(1h);
  std::string guess = p.id;
  for (char& c : guess) {
    const char was = c;
    c = was == '0' ? '1' : '0';
    EXPECT_FALSE(two_.release(guess));
    c = was;
  }
  EXPECT_EQ(two_.available(), 1u);
}

}  // namespace
}  // namespace conformance
