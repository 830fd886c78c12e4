#pragma once

#include <functional>
#include <holdfast/result.hpp>
#include <holdfast/store/capabilities.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/identity.hpp>
#include <holdfast/store/inbox.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

/// A change to one record, decided by the family. Pure: a store may call it again in a transaction
/// that it had to repeat; only the last call counts.
class transition {
 public:
  /// `record` is the text stored under `name`, empty if there is none. Returns what to store
  /// instead (empty: nothing need be kept), or null to leave everything as it is. The pointer
  /// stays valid until the next call.
  virtual const std::string* apply(std::string_view record, const moment& now) = 0;

  /// Called before the next apply(), if the record that the last apply() returned was sent, its
  /// answer was lost, and the store now has another record. It may have been stored and then
  /// replaced. In a transaction of several names, this is called for all of them if at least one
  /// has another record.
  virtual void may_have_been_stored() noexcept {}

  /// Whether the record that apply() returned shows that this change was made, or another with the
  /// same effect. If not, another client may have made the same record by a change of its own, and
  /// a change whose answer was lost is made again.
  virtual bool is_recognizable() const noexcept { return true; }

  /// Whether apply() almost always returns null. A store whose readers do not wait for writers may
  /// call apply() in a read first, and begin to write only if that call returned a record.
  virtual bool only_asks() const noexcept { return false; }

 protected:
  ~transition() = default;
};

/// The port of a state store: one transaction over one record, on the store's clock. Memory,
/// SQLite, PostgreSQL and MariaDB implement it; the kernel is applied by the family.
/// Thread-safe.
class state_store {
 public:
  virtual ~state_store() = default;

  virtual const capabilities& can() const noexcept = 0;
  virtual const std::string& url() const noexcept = 0;

  /// Reads the record of `name`, applies the transition, and writes its result: atomically, for all
  /// processes that use the store. Either everything happened or nothing, unless the failure has
  /// outcome_unknown.
  virtual status transact(std::string_view name, transition& change) = 0;

  /// Several of them; a store that can puts them into one transaction. The default does not.
  struct step {
    std::string_view name;
    transition* change;
  };
  virtual std::vector<status> transact(std::span<const step> steps);

  /// Several names, all different, in one transaction. After each step `judge` gets its number and
  /// decides how to continue. The default returns errc::unsupported, and changes nothing.
  enum class verdict { go_on, keep, undo };
  using judge = std::function<verdict(std::size_t step)>;
  virtual status transact_together(std::span<const step> steps, const judge& after);

  /// As session_store::identify.
  virtual result<store::identity> identify() { return store::identity{url(), {}}; }
  /// As session_store::facts.
  virtual result<store::facts> facts() { return store::facts{}; }

  /// All names that have a record, each with its record. The records are not checked here: a
  /// damaged or foreign one is returned unchanged, as text, and does not make this fail. Costs a
  /// scan.
  struct entry {
    std::string name;
    std::string record;
  };
  virtual result<std::vector<entry>> entries() = 0;
  /// A part of the entries, for a scan in small steps: at most `most` entries after the name
  /// `behind`, in the order of the names; none at the end. A store that has no order ignores the
  /// name, and returns other entries each time. The default returns all entries. Costs a round
  /// trip.
  virtual result<std::vector<entry>> walk(std::string_view behind, std::size_t most);
  /// The store's time, to judge the records of entries() and walk().
  virtual result<moment> time() = 0;

  /// True only if the session with that address is certainly gone (its process died).
  virtual bool departed(std::string_view peer) {
    (void)peer;
    return false;
  }

  /// Sends the notification to the session at `to.peer`, as reliably as the store can. False only
  /// if that session has certainly ended.
  virtual bool tell(const notification& to) = 0;
  /// Several of them. Returns the addresses of the sessions that have certainly ended. The default
  /// sends one after the other.
  virtual std::vector<std::string> tell_all(std::span<const notification> all);

  virtual store::inbox& inbox() noexcept = 0;
};

}  // namespace holdfast::store
