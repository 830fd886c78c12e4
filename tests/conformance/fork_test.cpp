#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"

// fork() while holding: the child has copies of all objects and holds nothing.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::lease_state;

/// Runs `action` in a child process, and returns its result.
int in_a_child(const std::function<int()>& action) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    int answer = 99;
    try {
      answer = action();
    } catch (...) {
    }
    ::_exit(answer);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool refused_as_forked(const std::function<void()>& action) {
  try {
    action();
  } catch (const holdfast::error& e) {
    return e.reason() == errc::forked;
  }
  return false;
}

class forks : public suite {
 protected:
  std::unique_ptr<exclusive> make(holdfast::session s) const {
    return make_exclusive(GetParam().primitive, std::move(s), name_);
  }
  std::unique_ptr<exclusive> lock_ = make(here_);
  std::unique_ptr<exclusive> rival_ = make(another());
};

INSTANTIATE_TEST_SUITE_P(stores, forks,
                         testing::ValuesIn(cells({"mutex", "lingering_mutex", "fair_mutex",
                                                  "shared_mutex", "semaphore"})),
                         cell_name);

TEST_P(forks, a_child_holds_no_locks_and_every_use_there_is_a_clear_error) {
  lease held = lock_->acquire();
  EXPECT_EQ(0, in_a_child([&] {
              if (held.state() != lease_state::lost) return 1;
              if (held.remaining() != 0ns) return 2;
              if (!refused_as_forked([&] { held.check(); })) return 3;
              if (!refused_as_forked([&] { held.extend(); })) return 4;
              if (!refused_as_forked([&] { (void)lock_->try_acquire(); })) return 5;
              if (!refused_as_forked([&] { (void)rival_->acquire(); })) return 6;
              if (!refused_as_forked([&] { (void)here_.names(); })) return 7;
              if (!refused_as_forked([&] { (void)here_.show(name_); })) return 8;
              if (!refused_as_forked([&] { (void)here_.force_release(name_); })) return 9;
              return held.release() == make_error_code(errc::forked) ? 0 : 10;
            }));
  EXPECT_NO_THROW(held.check());
  EXPECT_EQ(holders(), 1u);
  EXPECT_FALSE(held.release());
}

TEST_P(forks, an_object_that_a_child_destroys_still_works_in_the_parent) {
  lease held = lock_->acquire();
  EXPECT_EQ(0, in_a_child([&] {
              {
                const lease copy = std::move(held);
              }
              lock_.reset();
              rival_.reset();
              {
                const holdfast::session gone = std::move(here_);
              }
              return 0;
            }));
  EXPECT_NO_THROW(held.check());
  EXPECT_NO_THROW(held.extend());
  EXPECT_FALSE(rival_->try_acquire());
  std::thread waiter([&] { EXPECT_TRUE(rival_->acquire()); });
  until_waiting(1);
  EXPECT_FALSE(held.release());
  waiter.join();
}

TEST_P(forks, a_child_that_ends_during_a_wait_of_its_parent_changes_nothing) {
  lease held = rival_->acquire();
  std::thread waiter([&] { EXPECT_TRUE(lock_->acquire()); });
  until_waiting(1);
  EXPECT_EQ(0, in_a_child([] { return 0; }));
  EXPECT_EQ(waiters(), 1u);
  EXPECT_EQ(holders(), 1u);
  held = {};
  waiter.join();
}

class forks_that_open : public forks {};
INSTANTIATE_TEST_SUITE_P(stores, forks_that_open,
                         testing::ValuesIn(shared_by_processes(cells({"mutex", "semaphore"}))),
                         cell_name);

TEST_P(forks_that_open, a_session_of_their_own_see_the_locks_of_the_parent) {
  const lease held = lock_->acquire();
  EXPECT_EQ(0, in_a_child([&] {
              const auto mine = holdfast::open(store_.url());
              if (make(mine)->try_acquire()) return 1;
              return make_exclusive(GetParam().primitive, mine, "another name")->try_acquire() ? 0
                                                                                               : 2;
            }));
  EXPECT_NO_THROW(held.check());
  EXPECT_EQ(holders(), 1u);
}

}  // namespace
}  // namespace conformance
