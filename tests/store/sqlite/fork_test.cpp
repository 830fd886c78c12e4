#include <filesystem>
#include <stop_token>
#include <thread>

#include "fixture.hpp"

namespace sqlite_test {
namespace {

namespace fs = std::filesystem;

class forks : public sqlite_store {};

TEST_F(forks, the_parents_session_is_refused_in_a_child) {
  const session store = open(path());
  EXPECT_TRUE(in_child([&] {
    rule change = increments();
    const std::vector<state_store::step> steps{{"name", &change}};
    const auto one = store->transact("name", change);
    const auto many = store->transact(steps);
    const auto all = store->entries();
    return !one && one.error().code == errc::forked && !many.front() && !all && change.calls == 0 &&
           store->tell({}) && !store->departed("x") && !store->inbox().receive(holdfast::forever);
  }));
  rule change = increments();
  EXPECT_TRUE(store->transact("name", change).ok());
}

TEST_F(forks, closing_the_parents_session_in_a_child_changes_nothing_for_the_parent) {
  session store = open(path());
  const session other = open(path());
  const std::string peer = store->inbox().peer();
  EXPECT_TRUE(in_child([&] {
    store.reset();
    return true;
  }));
  notification n;
  n.name = "name";
  n.peer = peer;
  EXPECT_TRUE(other->tell(n));
  EXPECT_EQ(store->inbox().receive(holdfast::forever), n);
  rule change = increments();
  EXPECT_TRUE(store->transact("name", change).ok());
  EXPECT_EQ(number_of(*other, "name"), 1);
}

TEST_F(forks, a_child_can_open_the_file_for_itself) {
  const session store = open(path());
  rule change = increments();
  ASSERT_TRUE(store->transact("name", change).ok());
  EXPECT_TRUE(in_child([&] {
    const session own = open(path());
    return own->inbox().peer() != store->inbox().peer() && own->transact("name", change).ok();
  }));
  EXPECT_EQ(number_of(*store, "name"), 2);
}

// SQLite's memory of the parent's file locks is wrong in the child: a child that trusted it would
// lose the log when the parent closes.
TEST_F(forks, a_child_keeps_the_file_when_the_parent_closes) {
  session store = open(path());
  rule change = increments();
  ASSERT_TRUE(store->transact("name", change).ok());
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_parent), 0);
  std::jthread parent{[&] {
    char c = 0;
    ASSERT_EQ(::read(to_parent[0], &c, 1), 1);  // the child has its own session
    store.reset();
    rule more = increments();
    ASSERT_TRUE(open(path())->transact("name", more).ok());
    ASSERT_EQ(::write(to_child[1], "x", 1), 1);
  }};
  EXPECT_TRUE(in_child([&] {
    const session own = open(path());
    rule more = increments();
    char c = 0;
    const bool first = own->transact("name", more).ok();
    const bool told = ::write(to_parent[1], "x", 1) == 1 && ::read(to_child[0], &c, 1) == 1;
    return first && told && own->transact("name", more).ok() && number_of(*own, "name") == 4;
  }));
  parent.join();
  EXPECT_EQ(number_of(*open(path()), "name"), 4);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(fd);
}

// fork() waits until no thread is in the middle of an operation, so a child never inherits half of
// one.
TEST_F(forks, a_fork_amid_transactions_of_other_threads_leaves_a_child_that_works) {
  const session store = open(path());
  std::atomic<long> done{0};
  std::vector<std::jthread> all;
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        rule change = increments();
        if (store->transact("name", change)) ++done;
      }
    });
  }
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(in_child([&] {
      rule change = increments();
      return open(path())->transact("child", change).ok();
    }));
  }
  all.clear();
  EXPECT_EQ(number_of(*store, "name"), done.load());
  EXPECT_EQ(number_of(*store, "child"), 40);
}

TEST_F(forks, a_grandchild_can_open_the_file_for_itself) {
  const session store = open(path());
  EXPECT_TRUE(in_child([&] {
    const session own = open(path());
    return in_child([&] {
      rule change = increments();
      const auto refused = own->transact("name", change);
      return !refused && open(path())->transact("name", change).ok();
    });
  }));
  EXPECT_EQ(number_of(*store, "name"), 1);
}

}  // namespace
}  // namespace sqlite_test
