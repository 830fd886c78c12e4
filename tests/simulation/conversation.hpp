#pragma once

#include <cstdint>
#include <functional>
#include <holdfast/store/store.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/world.hpp"

namespace simulation {

/// What all sessions ask their stores, and what they hear: the engine's side of each store,
/// whatever its family and its driver. With it, a judge can compare what a call says with what was
/// answered.
class conversation {
 public:
  explicit conversation(world& w) : world_(w) {}

  /// The same store, for a session of that process; `at` is the number of the store.
  std::unique_ptr<holdfast::store::session_store> heard(
      const process& by, std::size_t at, std::unique_ptr<holdfast::store::session_store> store);

  /// The greatest fence of the first `majority` stores that granted that process the name with one
  /// owner, of whose grants one has that fence. Nothing if no such grant was heard.
  std::optional<std::uint64_t> greatest_fence(int process, const std::string& name,
                                              std::uint64_t fence, std::size_t majority) const;
  /// Whether the process's requests for the name since then have all been answered in the end,
  /// without a grant: the last answer came after each request that got none.
  bool all_was_answered(int process, const std::string& name, nanos since) const;
  /// When the last answer came to that process that was no grant of the name; a negative time if
  /// never.
  nanos answered_at(int process, const std::string& name) const {
    const auto at = requests_.find({process, name});
    return at == requests_.end() ? -1 : at->second.answered;
  }
  /// How many owners of that process have asked for several names together.
  int owners_of_several(int process) const {
    const auto at = together_.find(process);
    return at == together_.end() ? 0 : static_cast<int>(at->second.size());
  }
  /// Called when a process hears that the owner has the lock of that name.
  std::function<void(std::size_t at, const std::string& name, const holdfast::store::owner_id& of)>
      on_grant{};
  /// Called when a store's driver says that the first request of that owner for the name has
  /// certainly not been carried out.
  std::function<void(std::size_t at, const std::string& name, const holdfast::store::owner_id& of)>
      on_refusal{};
  /// Called when an owner asks for the name far more often than any waiter polls.
  std::function<void(int process, const std::string& name)> on_hurry{};
  /// How often a lock of that name was asked for by that owner.
  int asked(const std::string& name, const holdfast::store::owner_id& owner) const {
    const auto at = asked_.find({name, owner});
    return at == asked_.end() ? 0 : at->second.times;
  }
  /// Whether the owner's process has asked for the end of what the owner has.
  bool has_given_up(const holdfast::store::owner_id& owner) const {
    return given_up_.contains(owner);
  }

 private:
  friend class listening_store;
  using place = std::pair<int, std::string>;
  struct granted {
    std::size_t at;
    std::uint64_t fence;
  };
  struct question {
    int times = 0;
    nanos last = -1;
    nanos counted_from = 0;
    int counted = 0;  ///< in the second that began then
  };
  struct requests {
    int under_way = 0;
    nanos answered = -1;  ///< the last one, and it was not a grant
    nanos in_doubt = -1;  ///< the last one without an answer, or with a grant
    nanos sent = -1;      ///< when that was asked which was answered last
  };

  void asks(int process, const holdfast::store::named_command& c);
  void hears(int process, std::size_t at, const holdfast::store::named_command& c,
             const holdfast::result<holdfast::store::permits_reply>& reply);

  void hears_of_a_grant(std::size_t at, const holdfast::store::named_command& c,
                        const holdfast::store::permits_reply& reply) const;

  world& world_;
  std::map<place, requests> requests_;
  std::map<place, std::map<holdfast::store::owner_id, std::vector<granted>>> grants_;
  std::map<std::pair<std::string, holdfast::store::owner_id>, question> asked_;
  std::set<holdfast::store::owner_id> given_up_;
  std::map<int, std::set<holdfast::store::owner_id>> together_;
};

}  // namespace simulation
