#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <holdfast/rate_limiter.hpp>
#include <holdfast/session.hpp>
#include <thread>

#include "harness/fake_redis.hpp"
#include "tool/fixture.hpp"

namespace tool_test {

namespace {

using nlohmann::json;

class limits : public holdfast_tool {
 protected:
  json asked(words more) const {
    words all{"limit", "api", "--rate", "2/1d", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return json::parse(tool(all).out);
  }
};

}  // namespace

TEST_F(limits, requests_within_the_rate_succeed_and_later_ones_exit_with_75) {
  const words once{"limit", "api", "--rate", "2/1d"};
  EXPECT_EQ(tool(once).out, "api: taken, 1 of 2 left\n");
  EXPECT_EQ(tool(once).code, 0);
  const auto no = tool(once);
  EXPECT_EQ(no.code, 75);
  EXPECT_TRUE(no.out.starts_with("api: refused, 0 of 2 left; try again in ")) << no.out;
  EXPECT_EQ(tool({"limit", "api", "--rate", "2/1d", "-w", "1s", "-E", "3"}).code, 3);
}

TEST_F(limits, the_answer_has_the_values_for_http_headers) {
  const json first = asked({"-t", "2"});
  EXPECT_EQ(first["schema"], 1);
  EXPECT_EQ(first["outcome"], "taken");
  const json no = asked({});
  EXPECT_EQ(no["outcome"], "refused");
  EXPECT_EQ(no["rules"][0]["limit"], 2);
  EXPECT_EQ(no["rules"][0]["remaining"], 0);
  EXPECT_GT(no["wait_seconds"], 11 * 3600);
  EXPECT_EQ(asked({"--peek"})["outcome"], "refused");
  EXPECT_EQ(asked({"--refund", "-t", "2"})["outcome"], "refunded");
  EXPECT_EQ(asked({"--peek", "-t", "2"})["outcome"], "free");
}

TEST_F(limits, a_refund_of_more_than_the_burst_is_refused) {
  const auto refund = tool({"limit", "api", "--rate", "2/1d", "--refund", "-t", "3"});
  EXPECT_EQ(refund.code, 64);
  EXPECT_EQ(refund.err,
            "holdfast: rate_limiter 'api' on " + store +
                ": invalid argument: a request is for 1 to 2 tokens (the smallest burst of "
                "the rules), not for 3\n");
}

// A script that repeats a failed command would give back twice.
TEST_F(limits, a_refund_that_the_store_took_succeeds_whatever_it_answers_next) {
  std::string looked;
  const harness::fake_redis server([&](const harness::fake_redis::words& command) {
    const auto says = [&](const char* word) {
      return std::find(command.begin(), command.end(), word) != command.end();
    };
    if (says("refund")) return std::string("*4\r\n:3\r\n:1\r\n:0\r\n:0\r\n");
    return says("inspect") ? looked : std::string();
  });
  for (const std::string gone : {"-ERR gone\r\n", harness::fake_redis::hang_up}) {
    looked = gone;
    const auto refunded =
        tool({"limit", "api", "--rate", "2/1d", "--refund", "--store", server.url()});
    EXPECT_EQ(refunded.code, 0) << refunded.err;
    EXPECT_EQ(refunded.out, "api: refunded\n");
  }
}

TEST_F(limits, each_key_has_buckets_of_its_own) {
  EXPECT_EQ(asked({"--key", "a", "-t", "2"})["outcome"], "taken");
  EXPECT_EQ(asked({"--key", "a"})["outcome"], "refused");
  EXPECT_EQ(asked({"--key", "b"})["outcome"], "taken");
}

TEST_F(limits, other_rates_while_it_is_in_use_are_78_and_more_than_the_burst_64) {
  EXPECT_EQ(tool({"limit", "api", "--rate", "2/1d"}).code, 0);
  const auto other = tool({"limit", "api", "--rate", "3/1d"});
  EXPECT_EQ(other.code, 78);
  EXPECT_EQ(other.err,
            "holdfast: api is in use with the rate 2/1d, not 3/1d; give --rate 2/1d, or replace it "
            "for all programs with --rules-version 1\n");
  EXPECT_EQ(tool({"limit", "api", "--rate", "2/1d", "-t", "3"}).code, 64);
  const auto no_lock = tool({"try", "api"});
  EXPECT_EQ(no_lock.code, 78);
  EXPECT_EQ(no_lock.err,
            "holdfast: api is in use as a rate_limiter, which is no lock: holdfast limit api "
            "--rate RATE --peek\n");
  EXPECT_EQ(shown("api")["kind"], "rate_limiter");
}

TEST_F(limits, rates_in_use_are_named_as_they_are_typed) {
  // Without a burst where that is the same rate, and with exact times.
  const std::vector<std::array<std::string, 3>> cases{{"10/1h:200", "200", "200/20h"},
                                                      {"6000000/1m", "6000000", "6000000/1m"},
                                                      {"3/0.5ms:20000000", "20000000", ""},
                                                      {"7/90s:9", "9", ""}};
  for (const auto& [typed, all, named] : cases) {
    const std::string name = "of " + all, &rate = named.empty() ? typed : named;
    EXPECT_EQ(tool({"limit", name, "--rate", typed, "-t", all}).code, 0) << typed;
    EXPECT_EQ(tool({"limit", name, "--rate", "1000/1d"}).err,
              "holdfast: " + name + " is in use with the rate " + rate +
                  ", not 1000/1d; give --rate " + rate +
                  ", or replace it for all programs with --rules-version 1\n");
  }
}

TEST_F(limits, of_several_rates_those_of_this_key_that_differ_are_named) {
  const auto with = [&](const char* key, const words& rates, const words& more = {}) {
    words all{"limit", "api", "--key", key};
    for (const auto& r : rates) all.insert(all.end(), {"--rate", r});
    all.insert(all.end(), more.begin(), more.end());
    return tool(all);
  };
  EXPECT_EQ(with("a", {"2/1d", "5/1d", "9/1d"}).code, 0);
  EXPECT_EQ(with("b", {"4/1d", "5/1d", "9/1d"}, {"--rules-version", "3"}).code, 0);
  EXPECT_EQ(with("a", {"2/1d", "6/1d", "8/1d"}).err,
            "holdfast: api is in use with the rate 5/1d, not 6/1d, and 9/1d, not 8/1d; give --rate "
            "5/1d and --rate 9/1d, or replace them for all programs with --rules-version 1\n");
}

TEST_F(limits, a_greater_version_of_the_rules_replaces_the_rules_in_use_for_all) {
  EXPECT_EQ(asked({"-t", "2"})["outcome"], "taken");
  const words more{"limit", "api", "--rate", "3/1d", "--json", "--rules-version", "1"};
  EXPECT_EQ(json::parse(tool(more).out)["rules"][0]["limit"], 3);
  EXPECT_EQ(asked({})["rules"][0]["limit"], 3) << "the older version is judged by the newer";
}

TEST_F(limits, a_reset_fills_the_buckets_of_its_key_and_no_others) {
  const words both{"limit", "api", "--rate", "2/1d", "--rate", "5/1d"};
  const auto take = [&](words more) {
    more.insert(more.begin(), both.begin(), both.end());
    return tool(more).code;
  };
  for (const char* key : {"a", "b"}) EXPECT_EQ(take({"--key", key, "-t", "2"}), 0);
  EXPECT_EQ(take({"--key", "a"}), 75);
  EXPECT_EQ(take({"--key", "a", "--reset"}), 0);
  EXPECT_EQ(take({"--key", "a", "-t", "2"}), 0);
  EXPECT_EQ(take({"--key", "b"}), 75);
  EXPECT_EQ(take({"--key", "c", "--reset"}), 0) << "full already";
}

TEST_F(limits, a_reset_also_restores_reserved_tokens) {
  holdfast::rate_limiter api(holdfast::open(store), "api",
                             {{.tokens = 2, .per = std::chrono::hours(24)}});
  EXPECT_TRUE(api.try_take(2));
  EXPECT_TRUE(api.reserve(2, std::chrono::hours(100)));
  EXPECT_EQ(tool({"limit", "api", "--rate", "2/1d", "--reset"}).code, 0);
  EXPECT_EQ(asked({"-t", "2"})["outcome"], "taken");
}

// The content of one rule does not come back in portions of another rule's content: that would take
// 20,000.
TEST_F(limits, a_reset_refills_each_bucket_at_once) {
  const holdfast::rate_rule many{.tokens = 20'000, .per = std::chrono::hours(24)};
  holdfast::rate_limiter api(holdfast::open(store), "api", {many, many});
  EXPECT_TRUE(api.try_take(20'000));
  const auto all = tool(
      {"limit", "api", "--rate", "1/1d", "--rate", "20000/1d", "--rules-version", "1", "--reset"});
  EXPECT_EQ(all.code, 0) << all.err;
}

// Another program reserves more tokens all the time.
TEST_F(limits, a_reset_that_a_signal_interrupts_ends_with_the_signal_s_code) {
  constexpr auto each = std::chrono::hours(1);
  holdfast::rate_limiter api(holdfast::open(store), "api", {{.tokens = 1, .per = each}});
  std::atomic<int> reserved{0};
  std::atomic<bool> over{false};
  const auto reserve = [&] { reserved += bool(api.reserve(1, 1'000'000 * each)) ? 1 : 0; };
  while (reserved < 700) reserve();  // of the 744 hours that may be reserved
  std::jthread other([&] {
    while (!over) reserve();
  });
  program p(command({"limit", "api", "--rate", "1/1h", "--reset"}), around);
  harness::eventually("it gives tokens back", [&] {
    const int at_least = reserved;
    return api.peek().rules.at(0).reset < (at_least - 2) * each;
  });
  p.signal(SIGTERM);
  EXPECT_EQ(p.wait(), 128 + SIGTERM);
  over = true;
}

TEST_F(limits, force_unlock_of_a_kind_without_holders_names_the_right_command) {
  EXPECT_EQ(tool({"limit", "api", "--rate", "2/1d"}).code, 0);
  const auto no = tool({"force-unlock", "api", "--yes"});
  EXPECT_EQ(no.code, 78);
  EXPECT_NE(no.err.find("--reset"), std::string::npos) << no.err;
  EXPECT_EQ(tool({"latch", "ready", "2", "--down", "1"}).code, 0);
  EXPECT_NE(tool({"try", "ready"}).err.find("which is no lock: holdfast latch ready 2 --peek"),
            std::string::npos);
  const auto latch = tool({"force-unlock", "ready", "--yes"});
  EXPECT_EQ(latch.code, 78);
  EXPECT_NE(latch.err.find("holdfast latch ready 2 --remove"), std::string::npos) << latch.err;
}

}  // namespace tool_test
