#pragma once

#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/capabilities.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/identity.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

/// A contender for a name: everything on which its turn depends.
struct contender {
  std::string node;  ///< the store's name of it
  owner_id owner{};  ///< empty: another program's contender, or the record of a latch
  store::kind kind = kind::mutex;
  std::uint32_t capacity = 1;
  std::uint32_t weight = 1;
  bool raises = false;  ///< the second node of a reader that wants to upgrade
  bool operator==(const contender&) const = default;
};

/// The data that a contender writes into its node.
struct contender_data {
  std::uint32_t weight = 0;        ///< the present weight; 0: that of the contender
  std::uint64_t fence = 0;         ///< grows with the order in which nodes are created
  std::int64_t since_wall_at = 0;  ///< on the store's clock
  std::int64_t lease_us = 0;
  std::string peer;
  std::string note;
  std::uint64_t session = 0;  ///< the store's session that created the node; the node ends with it
};

/// The port of a contender store (ZooKeeper, etcd). The store orders the nodes of the contenders,
/// and removes the nodes of a session when the session ends. It also keeps one record for each
/// name, for data that must outlive sessions. The family decides which contender holds the name.
/// Thread-safe; one round trip for each call, unless stated otherwise.
class contender_store {
 public:
  /// A thread of the store calls it once. It must not wait for anything.
  using alarm = std::function<void()>;

  virtual ~contender_store() = default;

  virtual const capabilities& can() const noexcept = 0;
  virtual const std::string& url() const noexcept = 0;
  /// This session's address. Constant.
  virtual const std::string& peer() const noexcept = 0;

  /// Until when, by this process's clock, the store cannot end this session and remove its nodes.
  /// Each reply from the leader moves it; boot_time{} for a session that has ended.
  virtual boot_time safe_until(std::uint64_t session) const noexcept = 0;
  /// How far such a reply moves that time.
  virtual std::chrono::nanoseconds safe_span() const noexcept = 0;

  struct entered {
    std::string node;
    std::uint64_t fence = 0;
    bool replaced = false;
    bool repeated = false;  ///< the request was sent twice: one that is still on its way may take
                            ///< effect later (as_of::settled excludes that)
    std::vector<contender> line{};  ///< the queue then, if the store returns it in the same step
    std::uint64_t session = 0;      ///< as contender_data::session
  };
  /// Creates a node at the end of the queue, and in the same step removes the nodes in `leaving`
  /// that still exist (`replaced`). Asks the leader. If no answer came (outcome_unknown), or the
  /// answer says `repeated`, a request that is still under way may create the node later, even
  /// after the owner has left.
  virtual result<entered> enter(std::string_view name, const contender& who,
                                const contender_data& says,
                                std::span<const std::string> leaving) = 0;

  /// The queue, in order of arrival. A name with a record begins with a contender that has no owner
  /// and is a latch. `latest`: contains everything that any client has done before (else what this
  /// session's server knows). `settled`: in addition, no earlier request of this session to enter
  /// or leave takes effect later. `on_arrival`, if set, is called when a contender enters or
  /// leaves.
  enum class as_of { seen, latest, settled };
  virtual result<std::vector<contender>> contenders(std::string_view name, as_of when,
                                                    alarm on_arrival) = 0;

  /// Removes nodes. False if none of them existed. Asks the leader.
  virtual result<bool> leave(std::string_view name, std::span<const std::string> nodes) = 0;

  /// The data of a node; empty if the node is gone. `on_change`, if set, is called when the data
  /// changes, when the node is removed, or when this session has ended.
  virtual result<std::optional<contender_data>> read(std::string_view name, const std::string& node,
                                                     alarm on_change) = 0;
  /// A node as the store's other clients know it. No round trip.
  virtual std::string address(std::string_view name, const std::string& node) const = 0;
  /// The data of many nodes, in one round trip.
  virtual result<std::vector<std::optional<contender_data>>> read(
      std::string_view name, std::span<const contender> line) = 0;
  /// Replaces the data of a node. False if the node is gone. Asks the leader.
  virtual result<bool> write(std::string_view name, const std::string& node,
                             const contender_data& says) = 0;

  /// Whether these nodes still exist, as the leader knows it: the renewal of a session. One round
  /// trip for all.
  struct node_of {
    std::string_view name;
    std::string node;
  };
  virtual std::vector<result<bool>> confirm(std::span<const node_of> nodes) = 0;

  /// A state of a record that no other one has: no earlier or later state of it, and none of a
  /// record that the name had before or gets when this one is gone.
  struct revision {
    std::int64_t number = -1;  ///< −1: there is no record
    std::uint64_t life = 0;    ///< of a store whose numbers begin anew with each record
    constexpr revision() noexcept = default;
    constexpr revision(std::int64_t n, std::uint64_t l = 0) noexcept : number(n), life(l) {}
    bool operator==(const revision&) const = default;
    bool is_of_a_record() const noexcept { return number >= 0; }
  };
  /// The record of a name, as the leader knows it. `waits`: the caller waits for a change of the
  /// record, which counts as a use. `on_change`, if set, is called at the next change, or when this
  /// session has ended.
  struct versioned {
    std::string text;  ///< empty: there is no record
    revision version;
  };
  virtual result<versioned> record(std::string_view name, bool waits, alarm on_change) = 0;
  /// Replaces the record by `text` if it has this version, which record() or replace() returned (or
  /// revision{}: if there is no record), or removes it if `text` is empty. Returns the new version;
  /// empty if the record has another version. A store without a clock removes a record that no
  /// client has written or waited for in `keep_us`.
  virtual result<std::optional<revision>> replace(std::string_view name, std::string_view text,
                                                  revision version, std::int64_t keep_us) = 0;
  /// The store's clock, to judge records; if the store has no clock, it never advances. Rarely a
  /// round trip.
  virtual result<moment> time() = 0;

  /// As session_store::facts.
  virtual result<store::facts> facts() { return store::facts{}; }

  struct used_name {
    std::string name;
    /// The queue is empty, and the store does not remove the record by itself: it may have expired.
    bool only_record = false;
  };
  /// All names with a contender or a record, including those that cannot be read, as in
  /// session_store::names. Costs a scan.
  virtual result<std::vector<used_name>> names() = 0;
};

}  // namespace holdfast::store
