#pragma once

#include <algorithm>
#include <functional>
#include <holdfast/store/state_store.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace kernel_test {

/// A state store whose time, dead sessions and failures a test sets. It remembers its
/// notifications. A session lives unless the test marks it dead.
class fake_state_store final : public holdfast::store::state_store {
 public:
  const holdfast::store::capabilities& can() const noexcept override { return capabilities; }
  const std::string& url() const noexcept override { return url_; }

  holdfast::status transact(std::string_view name, holdfast::store::transition& change) override {
    only_asked += change.only_asks() ? 1 : 0;
    return fails_alone ? holdfast::status(*fails_alone) : change_one(name, change);
  }

  std::vector<holdfast::status> transact(std::span<const step> steps) override {
    most_together = std::max(most_together, steps.size());
    return state_store::transact(steps);
  }

  holdfast::status transact_together(std::span<const step> steps, const judge& after) override {
    if (!together) return state_store::transact_together(steps, after);
    if (const auto then = std::exchange(after_lost_commit, {})) {
      if (auto ok = carry_out(steps, after); !ok) return ok;
      for (const auto& s : steps) s.change->may_have_been_stored();
      then();
    }
    return carry_out(steps, after);
  }

  holdfast::result<std::vector<entry>> entries() override {
    std::vector<entry> all;
    for (const auto& [name, record] : records) all.push_back({name, record});
    return all;
  }

  holdfast::result<std::vector<entry>> walk(std::string_view behind, std::size_t most) override {
    ++walks;
    most_walked = std::max(most_walked, most);
    std::vector<entry> some;
    for (auto at = records.upper_bound(behind); at != records.end() && some.size() < most; ++at) {
      some.push_back({at->first, at->second});
    }
    return some;
  }

  holdfast::result<holdfast::store::moment> time() override { return now; }

  bool departed(std::string_view peer) override {
    ++looked_up;
    return dead.contains(std::string(peer));
  }

  bool tell(const holdfast::store::notification& to) override {
    told.push_back(to);
    return !dead.contains(to.peer);
  }

  std::vector<std::string> tell_all(std::span<const holdfast::store::notification> all) override {
    ++told_at_once;
    return state_store::tell_all(all);
  }

  holdfast::store::inbox& inbox() noexcept override { return inbox_; }

  holdfast::store::capabilities capabilities;
  holdfast::store::moment now{1'000'000, 1'700'000'000'000'000};
  std::map<std::string, std::string, std::less<>> records;
  std::set<std::string> dead;
  int looked_up = 0;  ///< how often departed() was called
  std::vector<holdfast::store::notification> told;
  int told_at_once = 0;  ///< calls for them
  std::optional<holdfast::failure> fails;
  std::optional<holdfast::failure> fails_alone;  ///< the failure of a command about one name
  /// The answer to the first call was lost, and meanwhile the store contains this.
  std::optional<std::string> stored_before;
  /// A transaction over several names was carried out, its answer was lost, and then this is called
  /// before it is repeated.
  std::function<void()> after_lost_commit;
  int writes = 0;
  int only_asked = 0;
  bool together = true;  ///< it has transactions over several names
  int walks = 0;
  std::size_t most_walked = 0;
  std::size_t most_together = 0;

 private:
  // Applied twice, as by a store that has to repeat its transaction; only the last call counts.
  holdfast::status change_one(std::string_view name, holdfast::store::transition& change) {
    if (fails) return *fails;
    std::string& record = records[std::string(name)];
    (void)change.apply(record, now);
    if (const auto other = std::exchange(stored_before, {})) {
      change.may_have_been_stored();
      record = *other;
    }
    if (const std::string* const next = change.apply(record, now)) {
      record = *next;
      ++writes;
    }
    if (record.empty()) records.erase(std::string(name));
    return holdfast::done{};
  }

  holdfast::status carry_out(std::span<const step> steps, const judge& after) {
    const auto before = records;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (auto ok = change_one(steps[i].name, *steps[i].change); !ok) return ok;
      const verdict so = after(i);
      if (so == verdict::undo) records = before;
      if (so != verdict::go_on) break;
    }
    return holdfast::done{};
  }

  class silent_inbox final : public holdfast::store::inbox {
   public:
    const std::string& peer() const noexcept override { return peer_; }
    std::optional<holdfast::store::notification> receive(holdfast::boot_time) override {
      return {};
    }
    void interrupt() noexcept override {}

   private:
    std::string peer_ = "me";
  };

  silent_inbox inbox_;
  std::string url_ = "fake:";
};

}  // namespace kernel_test
