#include "fixture.hpp"
#include "harness/passing_on.hpp"

// A request that is repeated because its answer was lost counts once, however long that took by the
// server's clock, by which the server forgets.
namespace redis_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::countdown_command;
using holdfast::store::countdown_reply;
using holdfast::store::countdown_verb;

/// The answer to the first arrival is lost for `late`.
class loses_an_answer final : public harness::passing_on {
 public:
  loses_an_answer(std::unique_ptr<session_store> inner, harness::redis_server& server,
                  std::chrono::microseconds late)
      : passing_on(std::move(inner)), server_(server), late_(late) {}
  holdfast::result<countdown_reply> countdown(std::string_view name,
                                              const countdown_command& c) override {
    auto reply = passing_on::countdown(name, c);
    if (c.verb != countdown_verb::arrive || std::exchange(lost_, true)) return reply;
    EXPECT_TRUE(reply);
    server_.shift_clock(late_);
    return holdfast::failure{holdfast::errc::unavailable, "the answer was lost", true};
  }

 private:
  harness::redis_server& server_;
  const std::chrono::microseconds late_;
  bool lost_ = false;
};

class redis_repeats : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(layouts, redis_repeats, testing::Values("", "?dialect=redisson"),
                         [](const auto& p) { return p.param.empty() ? "ours" : "redisson"; });

TEST_P(redis_repeats, an_arrival_counts_once_for_as_long_as_the_session_may_repeat_it) {
  for (const auto& [patience, late] : {std::pair(10'000ms, 9s), std::pair(600'000ms, 590s)}) {
    harness::redis_server server;
    holdfast::session_options o;
    o.store_timeout = patience;
    o.decorate = [&server, late = late](auto inner) {
      return std::make_unique<loses_an_answer>(std::move(inner), server, late);
    };
    const auto s = holdfast::open(server.url(GetParam()), std::move(o));
    holdfast::latch gate{s, "gate", 3};
    gate.count_down();
    EXPECT_EQ(gate.remaining(), 2U) << patience.count() << " ms";
    gate.count_down();
    EXPECT_EQ(gate.remaining(), 1U) << "another arrival is another one";
  }
}

}  // namespace
}  // namespace redis_test
