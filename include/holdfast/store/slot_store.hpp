#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/capabilities.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/identity.hpp>
#include <holdfast/store/inbox.hpp>
#include <holdfast/store/rate.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

/// A part of a name that one owner can hold. A mutex is part 0 of its name. The permits of a
/// semaphore are the parts from 0 on, or, with capabilities::semaphore, all together part 0.
struct slot {
  std::string_view name;
  std::uint32_t part = 0;
  store::kind kind = kind::mutex;  ///< for stores where not all kinds look alike
  bool in_order = false;           ///< as permits_command::in_order
};

/// The content of a slot.
struct slot_entry {
  owner_id owner{};  ///< empty: the entry of a program other than holdfast
  store::kind kind = kind::mutex;
  std::uint32_t capacity = 1;
  std::uint64_t fence = 0;  ///< 0: not known
  std::int64_t since_wall_at = 0;
  std::int64_t left_us = 0;  ///< until the entry expires; 0: the store does not say
  std::string note{};
  bool alone = true;                 ///< of a shared_mutex: a writer, not a reader
  std::uint32_t weight = 1;          ///< permits of a semaphore; 0: this is no holder
  bool outlives_session = false;     ///< as permits_command::outlives_session
  std::int64_t queue_lease_us = 0;   ///< in order: how long its queue entry lasts; 0: a try
  std::vector<slot_entry> beside{};  ///< in an answer of look(): the other owners in it
  /// In an answer of look(), if the store counts free permits and may not know the other holders.
  std::optional<std::int64_t> free{};
};

enum class slot_outcome : std::uint8_t {
  done,   ///< the owner is in the slot (or still in it), or was until this step
  taken,  ///< another owner is in it
  empty,  ///< no owner is in it
};

struct slot_reply {
  slot_outcome outcome = slot_outcome::done;
  std::uint64_t fence = 0;          ///< done, on stores that have fences
  slot_entry other{};               ///< taken: the owner in it
  std::int64_t store_us = 0;        ///< the store's time since 1970, if the store tells it
  std::uint32_t others_listen = 0;  ///< of remove(): how many other clients were notified
  /// Of remove(): the owner was not there when the request was repeated because its answer was
  /// lost.
  bool gone_before = false;
};

/// The port of a slot store: add, extend if mine, remove if mine, and a time to live that the store
/// counts down. If a slot holds anything but a lock of this layout, it is never overwritten:
/// errc::kind_mismatch, with what was found. Every call may be repeated, because the owner id
/// identifies it. Thread-safe; one round trip for each call when no other client is in the way.
class slot_store {
 public:
  virtual ~slot_store() = default;

  virtual const capabilities& can() const noexcept = 0;
  virtual const std::string& url() const noexcept = 0;
  /// As session_store::identify.
  virtual result<store::identity> identify() { return store::identity{url(), {}}; }
  /// As session_store::facts.
  virtual result<store::facts> facts() { return store::facts{}; }
  /// As session_store::remembers_for.
  virtual result<std::optional<std::chrono::microseconds>> remembers_for() {
    auto who = identify();
    if (!who) return std::move(who.error());
    return who->up_for;
  }

  /// If the slot is empty, puts the entry in for this time. If this entry is already in, its time
  /// counts anew from now. An earlier attempt that arrives late must not shorten it.
  virtual result<slot_reply> add(const slot& where, const slot_entry& who,
                                 std::int64_t lease_us) = 0;
  /// If this owner is in the slot, its time counts anew from now.
  virtual result<slot_reply> extend(const slot& where, const slot_entry& who,
                                    std::int64_t lease_us) = 0;
  /// Only of stores with capabilities::shared: if that owner is in, a reader becomes a writer
  /// (`taken` if others are in, too), or a writer becomes a reader. `empty` if it is not in.
  virtual result<slot_reply> resize(const slot& where, const slot_entry& who,
                                    std::int64_t lease_us) {
    return (void)where, (void)who, (void)lease_us, not_here("shared_mutex");
  }
  /// Empties the slot, if this owner is in it.
  virtual result<slot_reply> remove(const slot& where, const owner_id& owner) = 0;
  /// The content of each slot. All are of one name. One round trip, or one for each few hundred
  /// slots.
  virtual result<std::vector<std::optional<slot_entry>>> look(std::span<const slot> at) = 0;
  /// Many at once; the default asks one by one.
  struct extension {
    slot where;
    slot_entry who;
    std::int64_t lease_us;
  };
  virtual std::vector<result<slot_reply>> extend(std::span<const extension> all) {
    std::vector<result<slot_reply>> replies;
    replies.reserve(all.size());
    for (const auto& e : all) replies.push_back(extend(e.where, e.who, e.lease_us));
    return replies;
  }

  /// The names of all slots in use, sorted, each once, including those that cannot be read, as in
  /// session_store::names. Costs a scan.
  virtual result<std::vector<std::string>> names() = 0;

  /// Only of stores with capabilities::latch: as session_store::countdown, but it records no
  /// waiters: a caller that finds the latch closed calls wait_for().
  virtual result<countdown_reply> countdown(std::string_view name, const countdown_command& c) {
    // Such a store has no latches, so a query finds none.
    if (c.verb == countdown_verb::inspect) return countdown_reply{};
    return (void)name, not_here("latch");
  }

  /// Only of stores with capabilities::rate_limiter: as session_store::rate.
  virtual result<rate_reply> rate(std::string_view name, const rate_command& c) {
    return (void)name, (void)c, not_here("rate_limiter");
  }

  /// Only of stores with capabilities::notifications: from now on, until done_waiting(), the inbox
  /// yields a `granted` notification with this owner whenever that name may have become free, or
  /// open.
  virtual void wait_for(const slot& where, const owner_id& owner) { (void)where, (void)owner; }
  virtual void done_waiting(const slot& where, const owner_id& owner) { (void)where, (void)owner; }
  /// How many releases of that name the inbox has heard of since wait_for().
  virtual std::uint64_t heard(const slot& where) { return (void)where, 0; }
  virtual store::inbox& inbox() noexcept = 0;

 private:
  failure not_here(std::string_view what) const {
    return {errc::unsupported, "the store " + url() + " has no " + std::string(what) +
                                   "; docs/matrix.md says which stores have it"};
  }
};

}  // namespace holdfast::store
