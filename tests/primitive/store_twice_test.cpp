#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "harness/failing.hpp"
#include "harness/passing_on.hpp"
#include "harness/temp_dir.hpp"

// One store by two URLs: a multi_lock that names one lock of it twice.
namespace {

using namespace std::chrono_literals;
using harness::contains;
using harness::outcome_of;
using holdfast::errc;
using holdfast::multi_lock;
using holdfast::mutex;
using holdfast::semaphore;

/// A store that was opened by another URL.
class by_another_url final : public harness::passing_on {
 public:
  struct answers {
    bool tells_who_it_is = true;
    bool away = false;
    std::atomic<int> asked{0};
    std::atomic<int> started{0};  ///< how often the server was restarted
  };
  by_another_url(std::unique_ptr<session_store> inner, std::shared_ptr<answers> a,
                 std::string url = "memory:by-another-url")
      : passing_on(std::move(inner)), url_(std::move(url)), answers_(std::move(a)) {}
  const std::string& url() const noexcept override { return url_; }
  holdfast::result<holdfast::store::identity> identify() override {
    ++answers_->asked;
    if (answers_->away) return holdfast::failure{errc::unavailable, "away"};
    if (answers_->tells_who_it_is) {
      auto who = inner_->identify();
      if (answers_->started > 0) who->run_id += '.' + std::to_string(answers_->started);
      return who;
    }
    return holdfast::failure{errc::not_permitted, "INFO is not for this user"};
  }

 private:
  const std::string url_;
  const std::shared_ptr<answers> answers_;
};

struct one_store_twice : testing::Test {
  holdfast::session open_otherwise() {
    holdfast::session_options o;
    o.decorate = [this](auto inner) {
      return std::make_unique<by_another_url>(std::move(inner), answers);
    };
    return holdfast::open("memory:one-store-twice", std::move(o));
  }
  const std::shared_ptr<by_another_url::answers> answers =
      std::make_shared<by_another_url::answers>();
  holdfast::session here = holdfast::open("memory:one-store-twice");
  holdfast::session again = open_otherwise();
};

TEST_F(one_store_twice, is_refused_before_anything_is_taken) {
  mutex a(here, "a"), m(here, "m"), same_m(again, "m");
  multi_lock all{a, m, same_m};
  const auto expect_refused = [&](const harness::failing& how) {
    EXPECT_EQ(how.reason, errc::invalid_argument) << how.text;
    EXPECT_TRUE(contains(how.text, "multi_lock 'm' on memory:")) << how.text;
    EXPECT_TRUE(contains(how.text, again.url() + " is the same store: a member twice would wait"))
        << how.text;
    for (const char* name : {"a", "m"}) EXPECT_EQ(here.show(name).last_fence, 0u) << name;
  };
  expect_refused(outcome_of([&] { (void)all.try_acquire(); }));
  ASSERT_FALSE(HasFailure()) << "it would wait for itself";
  expect_refused(outcome_of([&] { (void)all.try_acquire_for(1h); }));
  expect_refused(outcome_of([&] { (void)all.acquire(); }));
  expect_refused(outcome_of([&] { all.lock(); }));
  expect_refused(outcome_of([&] { (void)async_acquire(all).future().get().value(); }));
}

TEST_F(one_store_twice, receives_one_request_for_its_id_only_if_a_name_is_double) {
  mutex m(here, "m"), n(again, "n"), same_m(again, "m"), same_n(again, "n");
  EXPECT_TRUE((multi_lock{m, n}.try_acquire()));
  EXPECT_EQ(answers->asked, 0);
  const auto elsewhere = holdfast::open("memory:not-the-one-that-is-there-twice");
  mutex other_m(elsewhere, "m"), other_n(elsewhere, "n");
  multi_lock two_names{same_m, other_m, same_n, other_n};
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(two_names.try_acquire());
    EXPECT_EQ(answers->asked, i) << "once in each acquisition";
  }
  const auto in_the_way = other_n.acquire();
  EXPECT_FALSE(two_names.try_acquire_for(20ms));
  EXPECT_EQ(answers->asked, 4) << "it asks for the locks more than once";
}

TEST(one_store_by_two_urls, is_still_recognised_after_a_restart) {
  const auto answers = std::make_shared<by_another_url::answers>();
  answers->started = 1;
  const auto open = [&](const std::string& url) {
    holdfast::session_options o;
    o.decorate = [answers, url](auto inner) {
      return std::make_unique<by_another_url>(std::move(inner), answers, url);
    };
    return holdfast::open("memory:one-store-started-anew", std::move(o));
  };
  const auto a = open("memory:url-a"), b = open("memory:url-b");
  const auto elsewhere = holdfast::open("memory:not-the-one-started-anew");
  mutex m(a, "m"), same_m(b, "m"), other_m(elsewhere, "m");
  EXPECT_TRUE((multi_lock{m, other_m}.try_acquire())) << "only this one has asked before";
  ++answers->started;
  const auto how = outcome_of([&] { (void)multi_lock{m, same_m}.try_acquire(); });
  EXPECT_EQ(how.reason, errc::invalid_argument) << how.text;
}

TEST(a_store_that_is_away, receives_one_request_for_its_id_for_any_number_of_double_names) {
  const auto answers = std::make_shared<by_another_url::answers>();
  answers->away = true;
  for (const std::string url : {"memory:a-away", "memory:z-away"}) {
    SCOPED_TRACE(url);
    answers->asked = 0;
    holdfast::session_options o;
    o.decorate = [&](auto inner) {
      return std::make_unique<by_another_url>(std::move(inner), answers, url);
    };
    const auto there = holdfast::open("memory:one-that-is-away", std::move(o));
    const auto here = holdfast::open("memory:one-that-is-here");
    mutex a(here, "a"), b(here, "b"), c(here, "c");
    mutex other_a(there, "a"), other_b(there, "b"), other_c(there, "c");
    multi_lock all{a, b, c, other_a, other_b, other_c};
    EXPECT_TRUE(all.try_acquire());
    EXPECT_EQ(answers->asked, 1);
  }
}

// Each session asks as an owner of its own.
TEST_F(one_store_twice, that_does_not_tell_its_id_counts_each_member_separately) {
  answers->tells_who_it_is = false;
  semaphore some(here, "some", 2), same(again, "some", 2);
  multi_lock two{some, same};
  {
    const auto held = two.acquire();
    EXPECT_EQ(some.available(), 0u);
    EXPECT_NE(held.fences().at(0), held.fences().at(1));
  }
  EXPECT_EQ(some.available(), 2u);
  {
    const auto held = async_acquire(two).future().get().value();
    EXPECT_EQ(some.available(), 0u);
  }
  EXPECT_EQ(some.available(), 2u);
  const auto reader = holdfast::shared_mutex(here, "rw").acquire_shared();
  holdfast::shared_mutex rw(here, "rw"), same_rw(again, "rw");
  EXPECT_FALSE((multi_lock{shared(rw), same_rw}.try_acquire())) << "somebody else reads";
  mutex m(here, "m"), same_m(again, "m");
  EXPECT_FALSE((multi_lock{m, same_m}.try_acquire()));
  EXPECT_FALSE((multi_lock{m, same_m}.try_acquire_for(20ms))) << "it waits for itself";
  EXPECT_TRUE(m.try_acquire()) << "nothing is left";
}

TEST(two_paths_of_a_file, are_one_store) {
  const harness::temp_dir folder;
  const auto a = holdfast::open("sqlite:" + folder.file("x.db"));
  const auto b = holdfast::open("sqlite:" + folder.file("./x.db"));
  ASSERT_EQ(a.url(), b.url());
  semaphore some(a, "some", 2), same(b, "some", 2);
  const auto how = outcome_of([&] { (void)multi_lock{some, same}.acquire(); });
  EXPECT_EQ(how.reason, errc::invalid_argument) << how.text;
  EXPECT_EQ(some.available(), 2u);
}

}  // namespace
