#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/command.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

namespace holdfast::store {

/// What a session remembers about its holds, if the server does not keep it. An entry stays until
/// forget(), or until a minute after its lease. So a hold that is lost and never given back leaves
/// no entry for ever. There are never more than twice as many entries as unexpired ones, plus 64.
/// No round trip. Thread-safe.
template <class What>
class own_holds {
 public:
  explicit own_holds(clock& on) : clock_(on) {}

  std::optional<What> find(std::string_view name, const owner_id& owner) const {
    const std::lock_guard guard{mutex_};
    const auto at = all_.find({std::string(name), owner});
    return at == all_.end() ? std::nullopt : std::optional(at->second.what);
  }
  /// Call it with every grant and every renewal; `lease_us` as in the command.
  void put(std::string_view name, const owner_id& owner, What what, std::int64_t lease_us) {
    const auto lasts = std::chrono::microseconds(lease_us) + std::chrono::minutes(1);
    const std::lock_guard guard{mutex_};
    if (++puts_ > in_time_ + 64) remove_ended();
    all_.insert_or_assign({std::string(name), owner},
                          entry{std::move(what), saturated_add(clock_.now(), lasts)});
  }
  void forget(std::string_view name, const owner_id& owner) {
    const std::lock_guard guard{mutex_};
    all_.erase({std::string(name), owner});
  }
  std::size_t size() const {
    const std::lock_guard guard{mutex_};
    return all_.size();
  }

 private:
  struct entry {
    What what;
    boot_time until;
  };

  void remove_ended() {
    const boot_time now = clock_.now();
    std::erase_if(all_, [&](const auto& e) { return e.second.until < now; });
    puts_ = 0;
    in_time_ = all_.size();
  }

  clock& clock_;
  mutable std::mutex mutex_;
  std::map<owned_name, entry> all_;
  std::size_t puts_ = 0;     ///< calls of put() since ended entries were removed
  std::size_t in_time_ = 0;  ///< how many were left then
};

}  // namespace holdfast::store
