#if defined(HOLDFAST_WITH_POSTGRES) || defined(HOLDFAST_WITH_MARIADB)

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <new>
#include <string>

#include "exhaustion/failing_memory.hpp"
#include "harness/eventually.hpp"
#include "harness/mariadb_server.hpp"
#include "harness/postgres_server.hpp"

// With mode=session all threads of a session acquire free locks over one connection, on which
// answers come in the order of the requests. An answer whose request failed for want of memory must
// go to nobody else, and its lock must not stay locked.
namespace exhaustion {
namespace {

void with_ever_more_memory(const std::string& url) {
  auto session = holdfast::open(url), rival = holdfast::open(url);
  holdfast::mutex x{session, "x"}, y{session, "y"}, rival_x{rival, "x"}, rival_y{rival, "y"};
  const auto try_without_memory = [&](int allocations) {
    const no_memory_after now(allocations, of::this_thread);
    try {
      if (auto taken = x.try_acquire()) (void)taken->release();
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), holdfast::errc::overloaded) << e.what();
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(no_memory_after::failed());
    }
  };
  const auto taken = rival_y.acquire();
  for (int n = 0; !testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE(n);
    try_without_memory(n);
    const bool enough = !no_memory_after::failed();
    EXPECT_FALSE(y.try_acquire()) << "somebody else has it";
    harness::eventually("it is given back", [&] { return rival_x.try_acquire().has_value(); });
    if (enough) break;
  }
  EXPECT_NO_THROW(taken.check());
}

#ifdef HOLDFAST_WITH_POSTGRES
TEST(postgres_connection, gives_each_its_own_answer_where_the_caller_has_no_memory) {
  const harness::postgres_server server;
  with_ever_more_memory(server.url("?mode=session"));
}
#endif

#ifdef HOLDFAST_WITH_MARIADB
TEST(mariadb_connection, gives_each_its_own_answer_where_the_caller_has_no_memory) {
  const harness::mariadb_server server;
  with_ever_more_memory(server.url() + "locks?mode=session");
}
#endif

}  // namespace
}  // namespace exhaustion

#endif
