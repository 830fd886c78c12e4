#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <holdfast/store/posting.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/passing_on.hpp"
#include "harness/redis_server.hpp"

// Posted requests: their answers arrive when somebody reads them, and not before.
namespace {

using namespace std::chrono_literals;
using holdfast::redlock;
using holdfast::result;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;
using verb = holdfast::store::permits_verb;

/// Of all nodes of a test.
struct counts {
  std::atomic<int> posted{0};
  std::atomic<int> asked_for_grants{0};  ///< by a waiter
  std::atomic<bool> breaks{false};       ///< connections break while a request is written
  std::atomic<bool> no_memory{false};    ///< no memory is left when a request has been written
  std::atomic<int> late{0};              ///< how often its answers have not arrived yet
  std::function<void()> read;            ///< reads the answers
  std::function<void()> meanwhile;       ///< while its own answers have not arrived yet
};

/// Answers posted requests when their answers are collected. As at a store whose connection broke,
/// there is nothing to wait for; nobody else reads.
class posting_node final : public harness::passing_on {
 public:
  posting_node(std::unique_ptr<session_store> inner, std::shared_ptr<counts> c)
      : passing_on(std::move(inner)), counts_(std::move(c)) {
    counts_->read = [this] { collect(); };
  }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    if (c.verb == verb::acquire) ++counts_->asked_for_grants;
    return passing_on::permits(name, c);
  }
  bool post(std::string_view name, const permits_command& c, listener& then) override {
    const std::lock_guard guard{mutex_};
    ++counts_->posted;
    result<permits_reply> reply = holdfast::failure{holdfast::errc::unavailable, "it broke"};
    if (!counts_->breaks) reply = inner_->permits(name, c);
    unread_.push_back({std::move(then), std::move(reply)});
    if (counts_->no_memory) throw std::bad_alloc();
    return true;
  }
  source answers() override { return {}; }
  void collect() override {
    if (counts_->late > 0 && counts_->late-- > 0) {
      if (counts_->meanwhile) counts_->meanwhile();
      return;
    }
    std::vector<unread> all;
    {
      const std::lock_guard guard{mutex_};
      all.swap(unread_);
    }
    for (auto& one : all) one.then(std::move(one.reply));
  }

 private:
  struct unread {
    listener then;
    result<permits_reply> reply;
  };
  const std::shared_ptr<counts> counts_;
  std::mutex mutex_;
  std::vector<unread> unread_;
};

holdfast::session open_posting(const std::string& url, const std::shared_ptr<counts>& c) {
  holdfast::session_options o;
  o.decorate = [c](std::unique_ptr<holdfast::store::session_store> inner)
      -> std::unique_ptr<holdfast::store::session_store> {
    return std::make_unique<posting_node>(std::move(inner), c);
  };
  return holdfast::open(url, o);
}

std::string url_of_another_store() {
  static std::atomic<int> number{0};
  return "memory:posting-" + std::to_string(++number);
}

std::vector<holdfast::session> open_posting(const std::shared_ptr<counts>& c) {
  std::vector<holdfast::session> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(open_posting(url_of_another_store(), c));
  return nodes;
}

TEST(quorum_posting, renewals_are_not_left_to_a_later_read) {
  const auto seen = std::make_shared<counts>();
  redlock lock(open_posting(seen), "job", {.lease = 1s, .node_timeout = 1min});
  auto held = lock.acquire();
  const int posted = seen->posted;
  EXPECT_GT(posted, 0);
  harness::eventually("three renewals", [&] { return seen->asked_for_grants >= 9; });
  EXPECT_EQ(seen->posted, posted);
  (void)held.release();
}

TEST(quorum_posting, a_connection_that_breaks_while_it_is_written_to_is_noticed) {
  const auto seen = std::make_shared<counts>();
  redlock lock(open_posting(seen), "job", {.node_timeout = 20s});
  seen->breaks = true;
  auto held = lock.try_acquire();
  ASSERT_TRUE(held);
  EXPECT_GT(seen->posted, 0);
  EXPECT_GT(seen->asked_for_grants, 0) << "a waiter asked again";
  EXPECT_FALSE(held->release());
}

// Another owner has the first two nodes, so the last one decides.
TEST(quorum_posting, a_node_that_was_asked_without_memory_answers_for_no_other) {
  std::vector<std::shared_ptr<counts>> of_node;
  std::vector<holdfast::session> nodes;
  std::vector<holdfast::quorum_lease> theirs;
  for (int i = 0; i < 5; ++i) {
    const auto url = url_of_another_store();
    of_node.push_back(std::make_shared<counts>());
    nodes.push_back(open_posting(url, of_node.back()));
    if (i < 2) theirs.push_back(redlock({holdfast::open(url)}, "job").acquire());
  }
  of_node.front()->no_memory = true;
  of_node.back()->late = 20;
  of_node.back()->meanwhile = of_node.front()->read;  // another request that uses its connection
  redlock lock(nodes, "job", {.node_timeout = 20s});
  auto held = lock.try_acquire();
  ASSERT_TRUE(held);
  EXPECT_EQ(of_node.back()->late, 0) << "it was waited for";
  EXPECT_FALSE(held->release());
}

TEST(quorum_posting, servers_that_forgot_the_scripts_get_them_with_the_next_renewal) {
  std::vector<std::unique_ptr<harness::redis_server>> servers;
  std::vector<holdfast::session> nodes;
  for (int i = 0; i < 3; ++i) {
    servers.push_back(std::make_unique<harness::redis_server>());
    nodes.push_back(holdfast::open(servers.back()->url()));
  }
  redlock lock(nodes, "job", {.lease = 3s, .node_timeout = 5s});
  (void)lock.acquire().release();
  auto held = lock.acquire();
  const auto knows_scripts = [](const auto& s) {
    return s->field({"INFO", "memory"}, "number_of_cached_scripts") != "0";
  };
  // An acquire returns at a majority: the third may get them a moment later.
  harness::eventually("all have the scripts",
                      [&] { return std::all_of(servers.begin(), servers.end(), knows_scripts); });
  for (const int i : {0, 1})
    EXPECT_EQ(servers[static_cast<std::size_t>(i)]->ask({"SCRIPT", "FLUSH"}), "OK");
  harness::eventually("the renewal is had everywhere",
                      [&] { return std::all_of(servers.begin(), servers.end(), knows_scripts); });
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(held.release());
}

}  // namespace
