#pragma once

#include <condition_variable>
#include <functional>
#include <holdfast/store/contender_store.hpp>
#include <holdfast/store/micros.hpp>
#include <holdfast/store/wake_time.hpp>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "family/shared_watches.hpp"

namespace holdfast::family {

using store::after;
using store::micros;

/// When to look again at what calls if it changes. A store that answers and cannot watch calls at
/// once, over and over. That shows in looks that find what the one before has found: the pause
/// after those grows. A call that comes long after a look is of a store that watched meanwhile, and
/// has perhaps connected anew: the next pause is a short one again.
class paced_looks {
 public:
  /// What changes meanwhile calls, too.
  void begins(boot_time now) noexcept;
  void ended(boot_time now, std::string found);
  void called(boot_time now) noexcept;
  /// Not before.
  boot_time next() const noexcept { return next_; }

 private:
  std::optional<std::string> found_;
  unsigned in_vain_ = 0;
  boot_time looked_{};
  boot_time next_{};
};

/// A contender node that this session made.
struct own_entry {
  std::string name;
  /// What the store calls it; two after an upgrade. Empty: the store did not say whether it let it
  /// in, and it has to be looked for.
  std::vector<std::string> nodes{};
  std::uint32_t weight = 1;
  std::uint64_t fence = 0;
  std::uint64_t made = 0;     ///< the store's number for the last of `nodes`
  std::uint64_t session = 0;  ///< of the store: which one took it
  boot_time ends{};           ///< when nobody will have asked for it any more
  bool held = false;
  bool unsure = false;  ///< there may be more of it at the store than `nodes` says, or come to be

  /// Those ahead that would tell us if they went, with their weight when they were read …
  std::map<std::string, std::uint32_t> watched{};
  std::map<std::string, paced_looks, std::less<>> looks{};  ///< at each of them, so far
  /// … and those that have to go before it can be our turn.
  std::vector<std::string> waits_for{};
  /// How often it was taken for granted that nothing has changed: now and then it is looked.
  unsigned quiet = 0;
  boot_time kept_at{};  ///< of a latch's waiter: when its wait last kept the latch
  bool nothing_new() const;
};

/// The contender nodes of this session, by name and owner; and what is to be done about it later,
/// by the family's own thread. The store ends places with their session; that a lease or a wait of
/// this session is over before, it learns from here. Thread-safe; nothing here but take_over()
/// waits for the store.
class own_entries {
 public:
  own_entries(clock& on, shared_watches& watches) : clock_(on), watches_(watches) {}

  std::optional<own_entry> find(std::string_view name, const store::owner_id& owner) const;
  /// Under the name that it has.
  void put(const store::owner_id& owner, own_entry node);
  /// Nobody needs to tell it anything any more.
  void erase(std::string_view name, const store::owner_id& owner);
  void forget_watched(std::string_view name, const store::owner_id& owner);
  /// False if it is not there.
  bool change(std::string_view name, const store::owner_id& owner,
              const std::function<void(own_entry&)>& how);

  /// Something for the thread: to give up what is over, to look for arrivals, or to tell a waiter
  /// that it has to look.
  struct job {
    enum class kind { give_up, see_arrivals, call } what = kind::give_up;
    std::string name;
    store::owner_id owner{};
    std::vector<std::string> nodes{};  ///< to give up
    bool unsure = false;
    boot_time at{};
    paced_looks looks{};  ///< for arrivals
  };
  void later(job j);
  /// The list's one job; or, where the thread could not do it, again. Takes no memory.
  using one_job = std::list<job>;
  void later(one_job j) noexcept;
  /// What there is to give up of that owner, which is now the caller's to do: before it enters
  /// anew, or it would lose that as well. Waits for what the thread gives up of it just now.
  std::optional<job> take_over(std::string_view name, const store::owner_id& owner);
  /// Waits for the next job, which is to be kept until the one after; empty after stop(). The one
  /// before is done, or there again. Without memory it waits until there is some.
  one_job next() noexcept;
  void stop();

 private:
  void forget_watched(std::string_view name, const store::owner_id& owner, own_entry& node);
  one_job take_due(boot_time now);
  boot_time next_at() const;

  clock& clock_;
  shared_watches& watches_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<store::owned_name, own_entry> entries_;
  std::list<job> jobs_;
  const job* giving_up_ = nullptr;  ///< what the thread is about
  std::condition_variable given_up_;
  store::wake_time wake_time_;  ///< of the thread that waits in next()
  bool stopping_ = false;
};

}  // namespace holdfast::family
