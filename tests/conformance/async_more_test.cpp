#include <future>

#include "conformance/cell.hpp"

// Asynchronous changes after an acquisition: modes of a shared_mutex, permits by id.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;

class async_modes : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_modes, testing::ValuesIn(cells({"shared_mutex"})),
                         cell_name);

TEST_P(async_modes, a_writer_becomes_a_reader_that_others_join_and_the_last_reader_a_writer) {
  holdfast::shared_mutex here{here_, name_, {of_row(), {}}};
  auto session = another();
  holdfast::shared_mutex there{session, name_, {of_row(), {}}};
  lease mine = async_acquire(here).future().get().value();
  auto theirs = async_acquire_shared(there).future();
  until_waiting(1);
  EXPECT_TRUE(async_downgrade(here, mine).future().get());
  lease reader = theirs.get().value();
  EXPECT_FALSE(async_upgrade(here, mine).future().get().value());
  EXPECT_FALSE(reader.release());
  const auto before = mine.fence();
  EXPECT_TRUE(async_upgrade(here, mine).future().get().value());
  EXPECT_GT(mine.fence(), before);
  EXPECT_FALSE(there.try_acquire_shared());
}

class async_by_id : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_by_id, testing::ValuesIn(cells({"expiring_semaphore"})),
                         cell_name);

TEST_P(async_by_id, a_permit_is_extended_and_released_once) {
  holdfast::expiring_semaphore permits{here_, name_, 1};
  auto session = another();
  holdfast::expiring_semaphore elsewhere{session, name_, 1};
  const auto mine = async_acquire(permits, 30s).future().get().value();
  EXPECT_TRUE(async_extend(elsewhere, mine.id, 60s).future().get().value());
  EXPECT_GT(here_.show(name_).holders.at(0).expires_in, 40s);
  EXPECT_TRUE(async_release(elsewhere, mine.id).future().get().value());
  EXPECT_FALSE(async_release(permits, mine.id).future().get().value());
  EXPECT_FALSE(async_extend(permits, mine.id, 60s).future().get().value());
  EXPECT_EQ(permits.available(), 1U);
}

TEST_P(async_by_id, impossible_ids_and_leases_are_refused_at_once) {
  holdfast::expiring_semaphore permits{here_, name_, 1};
  EXPECT_THROW((void)async_release(permits, "mine"), holdfast::error);
  EXPECT_THROW((void)async_extend(permits, std::string(32, '0'), 1ms), holdfast::error);
}

}  // namespace
}  // namespace conformance
