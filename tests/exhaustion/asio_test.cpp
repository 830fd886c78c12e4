#include <gtest/gtest.h>

#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>
#include <holdfast/asio.hpp>
#include <holdfast/holdfast.hpp>

#include "exhaustion/failing_memory.hpp"

// The n-th allocation of the session's threads fails, for n = 0, 1, 2, … until they need no more:
// each time the handler is called, with the same error as a call in C.
namespace exhaustion {
namespace {

TEST(asio_handler, is_called_even_without_memory_to_post_it) {
  bool failed = true;
  for (long n = 0; failed; ++n) {
    SCOPED_TRACE(std::to_string(n) + " allocations");
    const auto session = holdfast::open("memory:");
    holdfast::mutex lock{session, "m"};
    asio::io_context io;
    int told = 0;
    {
      const no_memory_after now(n, of::others);
      async_acquire(lock)(asio::bind_executor(io, [&](const auto& how) {
        if (!how) EXPECT_EQ(how.error().code, holdfast::errc::overloaded);
        ++told;
      }));
      io.run();
      failed = no_memory_after::failed();
    }
    ASSERT_EQ(told, 1);
  }
}

}  // namespace
}  // namespace exhaustion
