#include <gtest/gtest.h>

#include <holdfast/store/forwarding_store.hpp>
#include <holdfast/testing.hpp>
#include <set>

// A layer before a store passes on all calls. (A house rule notices when the port has grown.)
namespace {

using namespace holdfast::store;
using holdfast::result;
using holdfast::testing::fault;

/// Records its calls.
class witness final : public session_store, public posting_store {
 public:
  explicit witness(std::multiset<std::string>& asked) : asked_(asked) {}
  const capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return url_; }
  result<permits_reply> permits(std::string_view, const permits_command&) override {
    return note("permits"), permits_reply{};
  }
  result<countdown_reply> countdown(std::string_view, const countdown_command&) override {
    return note("countdown"), countdown_reply{};
  }
  bool permits_later(std::string_view, const permits_command&,
                     std::function<void(result<permits_reply>)> then) override {
    note("permits_later");
    then(permits_reply{});
    return true;
  }
  void settle() override { note("settle"); }
  result<rate_reply> rate(std::string_view, const rate_command&) override {
    return note("rate"), rate_reply{};
  }
  result<bucket_list> buckets(std::string_view) override { return note("buckets"), bucket_list{}; }
  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    return note("renew"), std::vector(batch.size(), result<permits_reply>(permits_reply{}));
  }
  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    return note("acquire_together"), std::vector<permits_reply>(all.size());
  }
  result<admission> admit(const named_command&, std::string_view, const rate_command&) override {
    return note("admit"), admission{};
  }
  result<standing> standing_of(std::string_view, const owner_id&) override {
    return note("standing_of"), standing{};
  }
  result<identity> identify() override { return note("identify"), identity{}; }
  result<holdfast::store::facts> facts() override {
    return note("facts"), holdfast::store::facts{};
  }
  result<std::vector<std::string>> names() override {
    return note("names"), std::vector<std::string>{};
  }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }
  bool post(std::string_view, const permits_command&, listener& then) override {
    note("post");
    then(permits_reply{});
    return true;
  }
  source answers() override { return note("answers"), source{7}; }
  void collect() override { note("collect"); }

 private:
  struct silent final : holdfast::store::inbox {
    const std::string& peer() const noexcept override { return peer_; }
    void interrupt() noexcept override {}
    std::optional<notification> receive(holdfast::boot_time) override { return {}; }
    std::string peer_ = "me";
  };
  void note(const char* what) { asked_.insert(what); }
  std::multiset<std::string>& asked_;
  capabilities can_{};
  std::string url_ = "witness:";
  silent inbox_;
};

/// Makes every call once, and returns the number of answers that came to posted calls.
int ask_everything(session_store& s) {
  int later = 0;
  posting_store::listener then = [&](const auto&) { ++later; };
  const named_command one{"m", {}};
  (void)s.permits("m", {});
  (void)s.countdown("m", {});
  (void)s.permits_later("m", {}, then);
  s.settle();
  (void)s.rate("m", {});
  (void)s.buckets("m");
  EXPECT_EQ(s.execute_batch(std::vector(3, one)).size(), 3u);
  (void)s.acquire_together(std::vector(2, one));
  (void)s.admit(one, "limit", {});
  (void)s.standing_of("m", {});
  (void)s.identify();
  (void)s.facts();
  (void)s.names();
  auto* const posting = dynamic_cast<posting_store*>(&s);
  EXPECT_TRUE(posting != nullptr && posting->post("m", {}, then));
  if (posting == nullptr) return later;
  EXPECT_EQ(posting->answers().descriptor, 7);
  posting->collect();
  return later;
}

const std::multiset<std::string> everything{
    "permits", "countdown",        "permits_later", "settle",      "rate",     "renew",
    "buckets", "acquire_together", "admit",         "standing_of", "identify", "names",
    "post",    "answers",          "collect",       "facts"};

TEST(forwarding_store, passes_on_each_call_as_it_is) {
  std::multiset<std::string> asked;
  forwarding_store s(std::make_unique<witness>(asked));
  EXPECT_EQ(ask_everything(s), 2);
  EXPECT_EQ(asked, everything);
  EXPECT_EQ(s.url(), "witness:");
  EXPECT_EQ(s.inbox().peer(), "me");
}

TEST(forwarding_store, before_a_store_that_posts_nothing_posts_nothing) {
  std::multiset<std::string> asked;
  one_by_one s(std::make_unique<forwarding_store>(std::make_unique<witness>(asked)));
  posting_store::listener then = [](const auto&) {};
  EXPECT_FALSE(s.post("m", {}, then));
  EXPECT_EQ(s.answers().descriptor, -1);
  EXPECT_TRUE(asked.empty());
}

/// Grants what it is asked for so often, and then fails; it does none of it.
class failing_later final : public forwarding_store {
 public:
  failing_later(std::unique_ptr<session_store> inner, int after, bool unknown)
      : forwarding_store(std::move(inner)), left_(after), unknown_(unknown) {}
  result<permits_reply> permits(std::string_view, const permits_command& c) override {
    if (left_-- <= 0) return failure();
    const bool back = c.verb == permits_verb::release;
    return permits_reply{.outcome = back ? permits_outcome::done : permits_outcome::granted};
  }
  result<rate_reply> rate(std::string_view, const rate_command&) override {
    if (left_-- <= 0) return failure();
    return rate_reply{.outcome = rate_outcome::refused};
  }
  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    return session_store::acquire_together(all);
  }
  result<admission> admit(const named_command& asks, std::string_view limiter,
                          const rate_command& take) override {
    return session_store::admit(asks, limiter, take);
  }

 private:
  holdfast::failure failure() const {
    return {holdfast::errc::unavailable, "it refuses", unknown_};
  }
  int left_;
  bool unknown_;
};

TEST(defaults_of_a_store, leave_the_outcome_unknown_if_a_request_fails_after_a_grant) {
  std::multiset<std::string> asked;
  const auto is_unknown = [&](int after, bool admits, bool unknown = false) {
    failing_later s(std::make_unique<witness>(asked), after, unknown);
    permits_command c;
    c.verb = permits_verb::acquire;
    const named_command one{"m", c};
    if (admits) return s.admit(one, "limit", {}).error().outcome_unknown;
    return s.acquire_together(std::vector(2, one)).error().outcome_unknown;
  };
  EXPECT_FALSE(is_unknown(0, false)) << "nothing was granted";
  EXPECT_TRUE(is_unknown(0, false, true));
  EXPECT_TRUE(is_unknown(1, false)) << "the first one is held";
  EXPECT_FALSE(is_unknown(0, true));
  EXPECT_TRUE(is_unknown(1, true)) << "the permit is held";
  EXPECT_TRUE(is_unknown(2, true)) << "… also if it could not be given back";
}

TEST(faulty_store, without_a_fault_passes_on_each_call_as_it_is) {
  std::multiset<std::string> asked;
  const auto s = holdfast::testing::faulty({})(std::make_unique<witness>(asked));
  EXPECT_EQ(ask_everything(*s), 2);
  EXPECT_EQ(asked, everything);
}

struct faulty_batches : testing::Test {
  std::multiset<std::string> asked;
  fault what = fault::none;
  std::unique_ptr<session_store> s = holdfast::testing::faulty(
      {.choose = [this](auto, auto, auto) { return what; }, .delay = std::chrono::milliseconds(1)})(
      std::make_unique<witness>(asked));
};

TEST_F(faulty_batches, that_are_dropped_on_their_way_are_not_carried_out) {
  what = fault::drop_request;
  int later = 0;
  posting_store::listener then = [&](const result<permits_reply>& r) {
    EXPECT_FALSE(r);
    EXPECT_FALSE(r.error().outcome_unknown);
    ++later;
  };
  const named_command one{"m", {}};
  for (const auto& reply : s->execute_batch(std::vector(3, one))) EXPECT_FALSE(reply);
  EXPECT_FALSE(s->acquire_together(std::vector(2, one)));
  EXPECT_FALSE(s->admit(one, "limit", {}));
  EXPECT_FALSE(s->permits_later("m", {}, then));
  EXPECT_TRUE(dynamic_cast<posting_store&>(*s).post("m", {}, then));
  EXPECT_EQ(later, 2);
  EXPECT_TRUE(asked.empty());
}

TEST_F(faulty_batches, whose_replies_are_dropped_were_carried_out) {
  what = fault::drop_reply;
  int later = 0;
  posting_store::listener then = [&](const result<permits_reply>& r) {
    EXPECT_TRUE(!r && r.error().outcome_unknown);
    ++later;
  };
  const named_command one{"m", {}};
  for (const auto& reply : s->execute_batch(std::vector(3, one)))
    EXPECT_TRUE(!reply && reply.error().outcome_unknown);
  const auto together = s->acquire_together(std::vector(2, one));
  EXPECT_TRUE(!together && together.error().outcome_unknown);
  const auto admitted = s->admit(one, "limit", {});
  EXPECT_TRUE(!admitted && admitted.error().outcome_unknown);
  (void)s->permits_later("m", {}, then);
  (void)dynamic_cast<posting_store&>(*s).post("m", {}, then);
  EXPECT_EQ(later, 2);
  EXPECT_EQ(asked, (std::multiset<std::string>{"renew", "acquire_together", "admit",
                                               "permits_later", "post"}));
}

TEST_F(faulty_batches, that_are_doubled_are_carried_out_twice_but_for_tokens) {
  what = fault::duplicate;
  const named_command one{"m", {}};
  EXPECT_EQ(s->execute_batch(std::vector(3, one)).size(), 3u);
  EXPECT_TRUE(s->acquire_together(std::vector(2, one)));
  EXPECT_TRUE(s->admit(one, "limit", {}));
  (void)s->permits_later("m", {}, [](const auto&) {});
  EXPECT_EQ(asked,
            (std::multiset<std::string>{"renew", "renew", "acquire_together", "acquire_together",
                                        "admit", "permits_later", "permits_later"}));
}

TEST_F(faulty_batches, are_dropped_one_by_one) {
  int n = 0;
  const auto every_other = holdfast::testing::faulty({.choose = [&](auto, auto, auto) {
    return n++ % 2 == 0 ? fault::drop_request : fault::none;
  }})(std::make_unique<witness>(asked));
  const named_command one{"m", {}};
  const auto replies = every_other->execute_batch(std::vector(4, one));
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_FALSE(replies[0]);
  EXPECT_TRUE(replies[1]);
  EXPECT_FALSE(replies[2]);
  EXPECT_TRUE(replies[3]);
  EXPECT_EQ(asked.count("renew"), 1u);
}

}  // namespace
