#ifdef HOLDFAST_WITH_REDIS

#include <gtest/gtest.h>

#include <future>
#include <holdfast/holdfast.hpp>
#include <new>

#include "exhaustion/failing_memory.hpp"
#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/redis_server.hpp"

// All threads of a session share one connection to Redis, on which answers come in the order of the
// requests. A request that failed for want of memory must not take another one's answer.
namespace exhaustion {
namespace {

using namespace std::chrono_literals;

struct redis_connection : testing::Test {
  harness::redis_server server;
  holdfast::session session = holdfast::open(server.url());
  holdfast::mutex held{session, "held"}, free{session, "free"};

  void try_without_memory(int allocations, of whose, bool async) {
    const no_memory_after now(allocations, whose);
    try {
      if (async) {
        auto result = async_acquire(free, 0s).future();
        const enough_memory here;
        (void)result.get();
      } else if (auto taken = free.try_acquire()) {
        (void)taken->release();
      }
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), holdfast::errc::overloaded) << e.what();
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(no_memory_after::failed());
    }
  }

  /// Each answer shows to which request it belongs.
  void expect_all_is_well(const holdfast::lease& taken) {
    harness::eventually("it is given back", [&] { return session.show("free").holders.empty(); });
    EXPECT_NO_THROW(taken.check());
    const auto seen = session.show("held");
    ASSERT_EQ(seen.holders.size(), 1U);
    EXPECT_EQ(seen.holders.front().fence, taken.fence());
  }

  void with_ever_more_memory(of whose, bool async, bool reconnects) {
    const auto taken = held.acquire();
    for (int n = 0; !HasFailure(); ++n) {
      SCOPED_TRACE(n);
      if (reconnects) (void)server.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      try_without_memory(n, whose, async);
      const bool enough = !no_memory_after::failed();
      EXPECT_TRUE(free.try_acquire_for(1min)) << "the next waiter has memory";
      expect_all_is_well(taken);
      if (enough) break;
    }
  }
};

TEST_F(redis_connection, gives_each_its_own_answer_where_the_caller_has_no_memory) {
  with_ever_more_memory(of::this_thread, false, false);
}

TEST_F(redis_connection, gives_each_its_own_answer_where_the_session_has_no_memory) {
  with_ever_more_memory(of::others, true, false);
}

TEST_F(redis_connection, is_made_by_the_next_request_after_a_lack_of_memory) {
  with_ever_more_memory(of::this_thread, false, true);
}

// Another thread makes the request of a wait with a deadline.
TEST_F(redis_connection, that_there_is_no_memory_for_ends_no_wait) {
  bool enough = false;
  for (int n = 0; !enough && !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    (void)server.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    const no_memory_after now(n, of::others);
    EXPECT_TRUE(free.try_acquire_for(20s));
    enough = !no_memory_after::failed();
  }
}

// One thread asks the replicas for all requests that came meanwhile.
TEST(redis_acknowledgements, that_there_is_no_memory_to_ask_for_keep_no_caller_waiting) {
  const harness::redis_server server;
  // The server ends a WAIT only at its next tick.
  ASSERT_EQ(server.ask({"CONFIG", "SET", "hz", "500"}), "OK");
  const auto session = holdfast::open(server.url("?ack=1&ack_timeout=1ms"), {.store_timeout = 0ms});
  holdfast::mutex m{session, "m"};
  const auto ends = [&] {
    try {
      EXPECT_FALSE(m.try_acquire()) << "there are no replicas";
    } catch (const holdfast::error&) {
    } catch (const std::bad_alloc&) {
    }
  };
  for (int n = 0; !testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE(n);
    bool enough = false;
    {
      const no_memory_after now(n, of::this_thread);
      ends();
      enough = !no_memory_after::failed();
    }
    auto next = harness::concurrently(ends);
    ASSERT_EQ(next.wait_for(20s), std::future_status::ready);
    if (enough) break;
  }
}

}  // namespace
}  // namespace exhaustion

#endif
