#pragma once

#include <cstdint>
#include <functional>
#include <holdfast/store/contender_store.hpp>
#include <holdfast/store/owner_id.hpp>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::family {

/// The watches of this session at the store: each thing is watched once, for all owners that want
/// to be notified of its next change. The port cannot take a watch back, so a watch for each wait
/// would stay behind when a waiter gives up. With shared watches there are at most as many as
/// things. Thread-safe.
class shared_watches {
 public:
  using alarm = store::contender_store::alarm;
  /// Notifies an owner that `what` has changed. Called by threads of the store, without a lock.
  using told = std::function<void(std::string_view name, const store::owner_id& owner,
                                  std::string_view what)>;

  explicit shared_watches(told tell) : tell_(std::move(tell)) {}

  /// Reads `what`, and notifies the owner of the next change after that. `read` gets the alarm for
  /// the store; null if the store watches it already. `is_watched` tells from the result whether
  /// the store accepted the alarm; if not, no owner is notified.
  template <class Read, class Accepted>
  auto read(std::string_view name, std::string_view what, const store::owner_id& owner, Read read,
            Accepted is_watched) {
    beginning mine(*this, name, what, owner);
    auto found = read(mine.alarm());
    mine.is_watched = is_watched(found);
    return found;
  }

  /// From now on that owner is not notified. Takes no memory.
  void forget(std::string_view name, std::string_view what, const store::owner_id& owner) noexcept;

  /// The number of watched things.
  std::size_t size() const;

 private:
  using key = std::pair<std::string, std::string>;
  using key_view = std::pair<std::string_view, std::string_view>;
  struct by_key {
    using is_transparent = void;
    bool operator()(const key_view& a, const key_view& b) const { return a < b; }
  };
  struct watched {
    std::uint64_t number = 0;
    std::set<store::owner_id> owners{};
  };
  using all = std::map<key, watched, by_key>;

  /// One owner's read, from its begin to its result.
  class beginning {
   public:
    beginning(shared_watches& of, std::string_view name, std::string_view what,
              const store::owner_id& owner);
    ~beginning() { of_.begun(name_, what_, owner_, number_, is_watched); }
    beginning(const beginning&) = delete;
    beginning& operator=(const beginning&) = delete;

    shared_watches::alarm alarm();
    bool is_watched = false;

   private:
    shared_watches& of_;
    const std::string_view name_;
    std::string_view what_;
    const store::owner_id owner_;
    std::uint64_t number_ = 0;  ///< 0: another owner sets up the watch
  };

  void begun(std::string_view name, std::string_view what, const store::owner_id& owner,
             std::uint64_t number, bool is_watched) noexcept;
  void changed(const key_view& at) noexcept;
  void tell(const key_view& at, const std::set<store::owner_id>& owners) noexcept;

  const told tell_;
  mutable std::mutex mutex_;
  all all_;
  std::uint64_t last_number_ = 0;
};

}  // namespace holdfast::family
