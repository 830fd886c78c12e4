#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "stage.hpp"

namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;

/// The result of `work` in a child of fork(), as its exit code.
int in_a_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(session, a_forked_child_holds_no_locks_and_gets_a_clear_error) {
  auto s = std::make_unique<holdfast::session>(holdfast::open("memory:"));
  auto m = std::make_unique<mutex>(*s, "m");
  lease held = m->acquire();
  const int code = in_a_child([&] {
    if (held.state() != holdfast::lease_state::lost) return 1;
    try {
      m->lock();
      return 2;
    } catch (const holdfast::error& e) {
      if (e.reason() != errc::forked) return 3;
    }
    if (held.release() != errc::forked) return 4;
    m.reset();
    s.reset();  // must neither join the parent's threads nor close its connection
    return 0;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
  EXPECT_FALSE(held.release());
}

TEST(session, shows_holders_and_waiters) {
  stage s;
  holdfast::fair_mutex m{s.session, "m", {.reason = "nightly run"}};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  s.await_waiters("m", 1);
  const auto info = s.session.show("m");
  EXPECT_EQ(info.kind, "mutex");
  EXPECT_EQ(info.remaining, 0U);
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(info.holders[0].reason, "nightly run");
  EXPECT_EQ(info.holders[0].fence, held.fence());
  EXPECT_EQ(info.holders[0].short_id, held.short_id());
  EXPECT_EQ(info.holders[0].short_id.size(), 8U);
  EXPECT_EQ(info.waiters.at(0).reason, "nightly run");
  EXPECT_FALSE(held.release());
  waiter.join();
}

TEST(session, lists_only_names_in_use) {
  stage s;
  lease a = mutex{s.session, "a:1"}.acquire();
  lease b = mutex{s.session, "b:1"}.acquire();
  {
    lease c = mutex{s.session, "a:2"}.acquire();
  }
  EXPECT_EQ(s.session.names(), (std::vector<std::string>{"a:1", "b:1"}));
  EXPECT_EQ(s.session.names("a:*"), (std::vector<std::string>{"a:1"}));
}

TEST(session, force_release_hands_over_with_a_greater_fence) {
  stage s;
  holdfast::fair_mutex m{s.session, "m"};
  lease held = m.acquire();
  std::uint64_t next = 0;
  std::thread waiter([&] { next = m.acquire().fence(); });
  s.await_waiters("m", 1);
  EXPECT_EQ(s.session.force_release("m", "00000000"), 0U) << "not the one that holds it";
  EXPECT_EQ(s.session.force_release("m", held.short_id()), 1U);
  waiter.join();
  EXPECT_GT(next, held.fence());
  EXPECT_EQ(held.release(), errc::lost);
}

TEST(session, a_prefix_makes_names_of_its_own) {
  auto options = holdfast::session_options{};
  options.name_prefix = "shop:";
  auto with = holdfast::open("memory:prefix", options);
  auto without = holdfast::open("memory:prefix");
  lease held = mutex{with, "order"}.acquire();
  EXPECT_EQ(held.name(), "shop:order");
  EXPECT_TRUE(mutex(without, "order").try_acquire());
  EXPECT_FALSE(mutex(without, "shop:order").try_acquire());
}

TEST(error, names_the_operation_the_name_and_the_store) {
  auto s = holdfast::open("memory:err");
  lease held = holdfast::semaphore{s, "x", 3}.acquire();
  try {
    mutex{s, "x"}.lock();
    FAIL();
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::kind_mismatch);
    EXPECT_EQ(e.operation(), "mutex");
    EXPECT_EQ(e.name(), "x");
    EXPECT_EQ(e.store(), "memory:err");
    EXPECT_NE(std::string(e.what()).find("a semaphore of 3 permits"), std::string::npos);
    EXPECT_FALSE(e.retryable());
    EXPECT_EQ(e.code(), make_error_code(errc::kind_mismatch));
  }
}

TEST(error, a_failure_that_was_not_thrown_has_the_same_message) {
  holdfast::failure f{errc::busy, "held by web-1"};
  f.operation = "lock";
  f.name = "n";
  f.store = "sqlite:l.db";
  EXPECT_EQ(f.message(), "holdfast: lock 'n' on sqlite:l.db: busy: held by web-1");
}

TEST(error, ends_with_advice_and_not_with_the_text_of_its_code) {
  const auto text = [](errc code, std::string what) {
    return std::string(holdfast::error({code, std::move(what)}).what());
  };
  EXPECT_EQ(text(errc::invalid_argument, "a lease of 1 ms; give 100 ms or more"),
            "holdfast: invalid argument: a lease of 1 ms; give 100 ms or more");
  EXPECT_EQ(text(errc::lost, ""), "holdfast: the lock was lost");
  EXPECT_EQ(text(errc::kind_mismatch, "the name is in use as a mutex: choose another name"),
            "holdfast: the name is in use as a mutex: choose another name");
  EXPECT_EQ(text(errc::no_space, "the store is full: make room"),
            "holdfast: the store is full: make room");
  const holdfast::error first({errc::busy, "held by web-1"});
  const std::system_error copy = first;
  EXPECT_EQ(std::string(copy.what()), first.what()) << "a copy keeps the text";
}

TEST(error, compares_with_the_conditions_of_the_standard) {
  EXPECT_EQ(make_error_code(errc::timed_out), std::errc::timed_out);
  EXPECT_EQ(make_error_code(errc::deadlock), std::errc::resource_deadlock_would_occur);
  EXPECT_TRUE(holdfast::error({errc::lost, ""}).lease_gone());
  EXPECT_TRUE(holdfast::error({errc::unavailable, ""}).retryable());
}

TEST(session, an_expired_name_is_not_listed) {
  stage s;
  lease held = mutex(s.session, "m", {.renew = false}).acquire();
  s.clock->advance(31s);
  EXPECT_TRUE(s.session.names().empty());
}

TEST(session, lists_only_names_that_it_can_show) {
  auto options = holdfast::session_options{};
  options.name_prefix = "shop:";
  auto with = holdfast::open("memory:listed", options);
  auto without = holdfast::open("memory:listed");
  lease a = mutex(with, "a").acquire(), b = mutex(without, "b").acquire();
  ASSERT_EQ(with.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(with.show("a").holders.size(), 1U);
  EXPECT_EQ(without.names(), (std::vector<std::string>{"b", "shop:a"}));
}

TEST(session, a_name_is_checked_before_it_is_shown) {
  stage s;
  EXPECT_THROW((void)s.session.show(""), holdfast::error);
  EXPECT_THROW((void)s.session.force_release("a\nb"), holdfast::error);
}

errc reason_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const holdfast::error& e) {
    return e.reason();
  }
  return errc{};
}

TEST(session, a_count_of_another_kind_is_refused_and_not_made_up) {
  stage s;
  lease held = mutex(s.session, "m").acquire();
  lease some = holdfast::semaphore(s.session, "s", 3).acquire();
  holdfast::latch l(s.session, "l", 2);
  l.count_down();
  using holdfast::latch;
  using holdfast::semaphore;
  EXPECT_EQ(reason_of([&] { (void)semaphore(s.session, "m", 5).available(); }),
            errc::kind_mismatch);
  EXPECT_EQ(reason_of([&] { (void)semaphore(s.session, "l", 5).available(); }),
            errc::kind_mismatch);
  EXPECT_EQ(reason_of([&] { (void)semaphore(s.session, "s", 5).available(); }),
            errc::capacity_mismatch);
  EXPECT_EQ(reason_of([&] { (void)latch(s.session, "m", 5).remaining(); }), errc::kind_mismatch);
  EXPECT_EQ(reason_of([&] { latch(s.session, "m", 5).remove(); }), errc::kind_mismatch);
  EXPECT_EQ(reason_of([&] { (void)latch(s.session, "l", 5).remaining(); }),
            errc::capacity_mismatch);
}

TEST(session, memory_keeps_nothing_of_a_name_that_is_free) {
  stage s;
  for (int i = 0; i < 100; ++i) {
    lease held = mutex(s.session, std::to_string(i)).acquire();
    s.clock->advance(1ms);
  }
  EXPECT_TRUE(s.session.names().empty());
  const auto fence = mutex(s.session, "0").acquire().fence();
  s.clock->advance(1ms);
  EXPECT_GT(mutex(s.session, "0").acquire().fence(), fence);
}

TEST(session, a_forked_child_may_open_a_memory_store_of_the_same_name) {
  auto s = holdfast::open("memory:forked");
  lease held = mutex(s, "m").acquire();
  const int code = in_a_child([] {
    auto own = holdfast::open("memory:forked");
    return mutex(own, "m").try_acquire() ? 0 : 1;
  });
  EXPECT_EQ(code, 0) << "the child's space is its own";
}

TEST(error, shows_control_characters_instead_of_printing_them) {
  auto s = holdfast::open("memory:");
  try {
    mutex m(s, "a\n\x1b[31mb");
    FAIL();
  } catch (const holdfast::error& e) {
    const std::string what = e.what();
    EXPECT_EQ(what.find('\n'), std::string::npos);
    EXPECT_EQ(what.find('\x1b'), std::string::npos);
    EXPECT_NE(what.find("\\x0a"), std::string::npos);
  }
}

}  // namespace
