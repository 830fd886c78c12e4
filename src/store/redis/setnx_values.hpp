#pragma once

#include <algorithm>
#include <holdfast/store/own_holds.hpp>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store::redis {

/// The values that the owners of the dialect setnx wrote: only the time in the value shows which
/// owner it belongs to. A renewal proposes the time to write, so that it knows the possible values
/// even if it gets no answer: each of them is the owner's own. Thread-safe.
class setnx_values {
 public:
  setnx_values(clock& on, std::int64_t unit_us) : clock_(on), unit_us_(unit_us), known_(on) {}

  /// The values that the owner may have written, separated by spaces; the confirmed value comes
  /// first. Empty if nothing is known.
  std::string of(std::string_view name, const owner_id& owner) const {
    const auto hold = known_.find(name, owner);
    return hold ? in_words(*hold) : std::string{};
  }

  /// The time that a renewal is to write, which counts as a possible value from now on. Empty if
  /// nothing is known of the owner.
  std::string propose(std::string_view name, const owner_id& owner, std::int64_t lease_us) {
    auto hold = known_.find(name, owner);
    if (!hold) return {};
    const auto since =
        std::chrono::duration_cast<std::chrono::microseconds>(clock_.now() - hold->at).count();
    const auto ends = (hold->server_time + since + lease_us + on_its_way_us) / unit_us_ + 2;
    hold->values.push_back(std::to_string(ends));
    if (hold->values.size() > at_most) hold->values.erase(hold->values.begin() + 1);
    known_.put(name, owner, *hold, lease_us);
    return hold->values.back();
  }

  /// The server has not written that value, and will not.
  void withdraw(std::string_view name, const owner_id& owner, const std::string& value,
                std::int64_t lease_us) {
    auto hold = known_.find(name, owner);
    if (!hold) return;
    const auto at = std::find(hold->values.begin() + 1, hold->values.end(), value);
    if (at == hold->values.end()) return;
    hold->values.erase(at);
    known_.put(name, owner, *hold, lease_us);
  }

  /// The server has written the value, at `server_time`, after `sent`.
  void wrote(std::string_view name, const owner_id& owner, std::string value,
             std::int64_t server_time, boot_time sent, std::int64_t lease_us) {
    known_.put(name, owner, {{std::move(value)}, server_time, sent}, lease_us);
  }
  void forget(std::string_view name, const owner_id& owner) { known_.forget(name, owner); }

 private:
  /// More unanswered renewals than a lease has room for.
  static constexpr std::size_t at_most = 8;
  /// If a renewal is on its way for longer, the server chooses the time.
  static constexpr std::int64_t on_its_way_us = 100'000;

  struct written {
    std::vector<std::string> values;
    std::int64_t server_time = 0;  ///< in the latest answer, in microseconds
    boot_time at{};                ///< when that request was sent
  };

  static std::string in_words(const written& w) {
    std::string words;
    for (const auto& v : w.values) words += (words.empty() ? "" : " ") + v;
    return words;
  }

  clock& clock_;
  const std::int64_t unit_us_;
  own_holds<written> known_;
};

}  // namespace holdfast::store::redis
