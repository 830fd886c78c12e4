#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <holdfast/store/forwarding_store.hpp>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace holdfast::store;

/// The sessions named in the batches of released names.
struct heard {
  std::mutex mutex;
  std::vector<std::string> peers;
};

class listening final : public forwarding_store {
 public:
  listening(std::unique_ptr<session_store> inner, std::shared_ptr<heard> to)
      : forwarding_store(std::move(inner)), heard_(std::move(to)) {}
  std::vector<holdfast::result<permits_reply>> execute_batch(
      std::span<const named_command> batch) override {
    for (const auto& one : batch) {
      const std::lock_guard guard{heard_->mutex};
      if (one.command.verb == permits_verb::release) heard_->peers.emplace_back(one.command.peer);
    }
    return forwarding_store::execute_batch(batch);
  }

 private:
  const std::shared_ptr<heard> heard_;
};

// By that name the family distinguishes the session from the thread that renews all leases, and
// finds the entries that others left.
TEST(given_back, several_at_once_name_their_session) {
  const auto all = std::make_shared<heard>();
  holdfast::session_options o;
  o.decorate = [all](auto inner) { return std::make_unique<listening>(std::move(inner), all); };
  auto s = holdfast::open("memory:", o);
  holdfast::mutex a{s, "a"}, b{s, "b"};
  holdfast::multi_lock both{a, b};
  both.acquire().release();
  const std::lock_guard guard{all->mutex};
  ASSERT_EQ(all->peers.size(), 2U);
  for (const auto& peer : all->peers) EXPECT_FALSE(peer.empty());
}

}  // namespace
