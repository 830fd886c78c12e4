#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <holdfast/store/queue_inbox.hpp>
#include <holdfast/store/slot_store.hpp>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace kernel_test {

/// Slots in memory, on a clock that a test advances.
class fake_slot_store final : public holdfast::store::slot_store {
 public:
  using slot = holdfast::store::slot;
  using entry = holdfast::store::slot_entry;
  using reply = holdfast::store::slot_reply;
  using owner_id = holdfast::store::owner_id;
  using outcome = holdfast::store::slot_outcome;

  /// Permits one by one.
  explicit fake_slot_store(holdfast::clock& on) : clock_(on), inbox_("p", on) {
    capabilities.semaphore = capabilities.expiring = false;
  }

  const holdfast::store::capabilities& can() const noexcept override { return capabilities; }
  const std::string& url() const noexcept override { return url_; }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }

  holdfast::result<reply> add(const slot& at, const entry& who, std::int64_t lease_us) override {
    if (const auto f = fails()) return *f;
    standing* const other = find(at);
    if (other != nullptr && other->who.owner != who.owner) return taken(*other);
    standing& mine = other != nullptr ? *other : put(at, who);
    mine.until = clock_.now() + std::chrono::microseconds(lease_us);
    return answer({outcome::done, mine.who.fence, {}, store_us()});
  }
  holdfast::result<reply> extend(const slot& at, const entry& who, std::int64_t lease_us) override {
    if (const auto f = fails()) return *f;
    standing* const there = find(at);
    if (there == nullptr) return reply{outcome::empty, 0, {}};
    if (there->who.owner != who.owner) return taken(*there);
    there->until = clock_.now() + std::chrono::microseconds(lease_us);
    return reply{outcome::done, there->who.fence, {}};
  }
  holdfast::result<reply> remove(const slot& at, const owner_id& owner) override {
    if (const auto f = fails()) return *f;
    standing* const there = find(at);
    if (there == nullptr) return reply{outcome::empty, 0, {}};
    if (there->who.owner != owner) return taken(*there);
    all.erase({std::string(at.name), at.part});
    left_as.push_back(at.kind);
    reply r;
    r.others_listen = others_listen;
    r.gone_before = repeats_removals;
    return r;
  }
  holdfast::result<std::vector<std::optional<entry>>> look(std::span<const slot> at) override {
    if (const auto f = fails()) return *f;
    looked_at += at.size();
    std::vector<std::optional<entry>> found;
    for (const auto& s : at) {
      standing* const there = find(s);
      if (there == nullptr)
        found.emplace_back();
      else
        found.push_back(taken(*there).other);
    }
    if (after_look) std::exchange(after_look, nullptr)();
    return found;
  }
  holdfast::result<std::vector<std::string>> names() override {
    std::set<std::string> found;
    for (const auto& [key, there] : all) found.insert(key.first);
    return std::vector<std::string>(found.begin(), found.end());
  }
  void wait_for(const slot& at, const owner_id& owner) override {
    waiting.emplace(std::string(at.name), owner);
  }
  void done_waiting(const slot& at, const owner_id& owner) override {
    waiting.erase({std::string(at.name), owner});
    left_as.push_back(at.kind);
  }

  std::uint64_t heard(const slot&) override { return releases_heard; }

  struct standing {
    entry who;
    holdfast::boot_time until;
  };
  std::map<std::pair<std::string, std::uint32_t>, standing> all;
  /// How long an entry stays after its lease, as in memcached.
  std::chrono::nanoseconds keeps_for_longer{};
  std::set<std::pair<std::string, owner_id>> waiting;
  holdfast::store::capabilities capabilities;
  std::vector<holdfast::store::kind> left_as;  ///< by holders, and by waiters
  int calls = 0;
  std::size_t looked_at = 0;  ///< the number of slots that were read
  std::uint32_t others_listen = 0;
  std::uint64_t releases_heard = 0;
  std::int64_t epoch_us = 0;  ///< its wall clock when the test's clock began; 0: unknown
  bool drops_requests = false;
  bool drops_answers = false;          ///< to requests that add
  std::function<void()> after_look{};  ///< called once, when its answer is on its way
  bool repeats_removals = false;       ///< the answer to the first attempt is lost each time

 private:
  std::optional<holdfast::failure> fails() {
    ++calls;
    if (!drops_requests) return std::nullopt;
    return holdfast::failure{holdfast::errc::unavailable, "dropped"};
  }
  holdfast::result<reply> answer(reply r) {
    if (!drops_answers) return r;
    return holdfast::failure{holdfast::errc::unavailable, "dropped", true};
  }
  standing* find(const slot& at) {
    const auto there = all.find({std::string(at.name), at.part});
    if (there == all.end()) return nullptr;
    if (there->second.until > clock_.now()) return &there->second;
    all.erase(there);
    return nullptr;
  }
  standing& put(const slot& at, const entry& who) {
    standing& mine = all[{std::string(at.name), at.part}] = {who, {}};
    mine.who.fence = ++fence_;
    return mine;
  }
  reply taken(const standing& there) const {
    reply r{outcome::taken, 0, there.who, store_us()};
    const auto left = there.until - keeps_for_longer - clock_.now();
    r.other.left_us = std::max<std::int64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(left).count(), 1);
    return r;
  }

  std::int64_t store_us() const {
    if (epoch_us == 0) return 0;
    const auto now = clock_.now() - began_;
    return epoch_us + std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  }

  holdfast::clock& clock_;
  const holdfast::boot_time began_ = clock_.now();
  holdfast::store::queue_inbox inbox_;
  const std::string url_ = "slots:";
  std::uint64_t fence_ = 100;
};

}  // namespace kernel_test
