#include <gtest/gtest.h>
#include <pthread.h>

#include <new>

#include "session/no_thread.hpp"
#include "stage.hpp"

// The system gives no more threads.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::mutex;

/// New threads would need a stack larger than the address space.
class no_more_threads {
 public:
  no_more_threads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t too_large;
    EXPECT_EQ(pthread_getattr_default_np(&too_large), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&too_large, std::size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&too_large), 0);
    pthread_attr_destroy(&too_large);
  }
  ~no_more_threads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(no_thread, for_the_lease_keeper_is_an_error_and_nothing_is_taken) {
  stage s;
  mutex m{s.session, "m"};
  {
    const no_more_threads now;
    try {
      (void)m.try_acquire();
      FAIL() << "nobody would renew it";
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), errc::unavailable);
      EXPECT_NE(std::string(e.what()).find("limit of threads"), std::string::npos) << e.what();
    }
    EXPECT_EQ(async_acquire(m).future().get().error().code, errc::unavailable);
  }
  EXPECT_TRUE(m.try_acquire());
}

TEST(no_thread, for_the_deadline_of_a_call_is_no_obstacle_to_the_caller) {
  stage s;
  mutex m{s.session, "m"};
  EXPECT_TRUE(m.try_acquire());  // starts the lease keeper
  const no_more_threads now;
  EXPECT_TRUE(m.try_acquire_for(1s));
}

TEST(no_thread, for_deadlock_detection_is_reported_once) {
  auto seen = std::make_shared<recorder>();
  holdfast::session_options o;
  o.observer = seen;
  o.detect_deadlocks = true;
  auto session = holdfast::open("memory:", o);
  mutex a{session, "a"}, b{session, "b"};
  a.lock();
  {
    const no_more_threads now;
    for (int i = 0; i < 2; ++i) {
      b.lock();
      b.unlock();
    }
  }
  EXPECT_EQ(seen->count(event_kind::warning), 1U);
  a.unlock();
}

TEST(no_thread, because_of_memory_is_not_blamed_on_the_limit_of_threads) {
  try {
    throw std::bad_alloc();
  } catch (...) {
    const auto why = holdfast::engine::no_thread("to wait with");
    EXPECT_EQ(why.code, errc::overloaded);
    EXPECT_EQ(why.what, "no memory");
  }
}

}  // namespace
