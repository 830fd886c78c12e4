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

/// Decides when to read a watched thing again after its alarm. A store that answers but cannot
/// watch calls the alarm at once, over and over. Such reads find the same as the one before; the
/// pause after them grows. A call long after a read shows that the store watched meanwhile, and has
/// perhaps reconnected: the next pause is short again.
class paced_looks {
 public:
  /// Changes during the read call the alarm as well.
  void begins(boot_time now) noexcept;
  void ended(boot_time now, std::string found);
  void called(boot_time now) noexcept;
  /// The earliest time of the next read.
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
  /// The store's names of its nodes; two after an upgrade. Empty if the store did not say whether
  /// it created the node, which then has to be searched for.
  std::vector<std::string> nodes{};
  std::uint32_t weight = 1;
  std::uint64_t fence = 0;
  std::uint64_t made = 0;     ///< the fence of the last of `nodes`
  std::uint64_t session = 0;  ///< the store's session that created the node
  boot_time ends{};           ///< when it is removed unless it is asked for again
  bool held = false;
  /// The store may have more nodes of it than `nodes`, or may still create them.
  bool unsure = false;

  /// The watched nodes ahead, with their weights when they were read.
  std::map<std::string, std::uint32_t> watched{};
  std::map<std::string, paced_looks, std::less<>> looks{};  ///< the reads of each of them so far
  /// The nodes that have to vanish before its turn can come.
  std::vector<std::string> waits_for{};
  /// The number of polls in a row that assumed that nothing has changed; it is limited.
  unsigned quiet = 0;
  boot_time kept_at{};  ///< for a latch's waiter: when its wait last kept the latch
  bool nothing_new() const;
};

/// True if the store's session that created the nodes has ended: the store does not keep them alive
/// any more.
bool is_of_an_ended_session(const own_entry& mine, const store::contender_store& of);

/// The contender nodes of this session, by name and owner, and the background jobs for them, which
/// the family's own thread carries out. The store removes nodes when their session ends. A lease or
/// a wait of this session that ends earlier is ended from here. Thread-safe; only take_over() waits
/// for the store.
class own_entries {
 public:
  own_entries(clock& on, shared_watches& watches) : clock_(on), watches_(watches) {}

  std::optional<own_entry> find(std::string_view name, const store::owner_id& owner) const;
  /// Stores it under the entry's name.
  void put(const store::owner_id& owner, own_entry node);
  /// Removes the entry and its watches.
  void erase(std::string_view name, const store::owner_id& owner);
  void forget_watched(std::string_view name, const store::owner_id& owner);
  /// The same of one watched thing.
  void forget_watched(std::string_view name, const store::owner_id& owner, const std::string& what);
  /// Returns false if there is no such entry.
  bool change(std::string_view name, const store::owner_id& owner,
              const std::function<void(own_entry&)>& how);

  /// A job for the thread: to remove nodes, to check for arrivals, or to notify a waiter that it
  /// has to poll.
  struct job {
    enum class kind { give_up, see_arrivals, call } what = kind::give_up;
    std::string name;
    store::owner_id owner{};
    std::vector<std::string> nodes{};  ///< the nodes to remove
    bool unsure = false;
    boot_time at{};
    paced_looks looks{};  ///< for see_arrivals
  };
  void later(job j);
  /// Adds the list's only job; or adds it again, if the thread could not finish it. Takes no
  /// memory.
  using one_job = std::list<job>;
  void later(one_job j) noexcept;
  /// Takes over the jobs that remove nodes of that owner. The caller carries them out before the
  /// owner enters again, because a later removal would remove the new node as well. Waits while the
  /// thread removes nodes of that owner.
  std::optional<job> take_over(std::string_view name, const store::owner_id& owner);
  /// Waits for the next job; empty after stop(). The caller keeps it until the next call, by which
  /// it is done or was added again. Without memory the call waits until there is some.
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
  const job* giving_up_ = nullptr;  ///< the thread's current job
  std::condition_variable given_up_;
  store::wake_time wake_time_;  ///< for the thread that waits in next()
  bool stopping_ = false;
};

}  // namespace holdfast::family
