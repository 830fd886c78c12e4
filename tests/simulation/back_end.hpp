#pragma once

#include <holdfast/store/store.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/world.hpp"

namespace simulation {

/// What a server keeps, and how its clients ask for it.
class back_end {
 public:
  virtual ~back_end() = default;

  /// A session of that process.
  virtual std::unique_ptr<holdfast::store::session_store> connect(process& of) = 0;
  /// The names in use, as the server itself sees them.
  virtual std::vector<std::string> names() = 0;
  virtual std::string describe(std::string_view name) = 0;
  /// A holder or waiter of the name, and its process (0: unknown). To read them changes nothing.
  struct user {
    holdfast::store::owner_id owner;
    int process = 0;
    bool waits = false;
    nanos lasts = never;  ///< by the server's clock, where it knows
  };
  virtual std::vector<user> users(std::string_view name) = 0;
  /// What a latch of that name has left; nothing if there is none, or nobody can see it there.
  virtual std::optional<std::uint32_t> left_at_latch(std::string_view) { return {}; }
  /// The owners that wait there, and since when it says that they do; nobody, where that is not
  /// seen.
  virtual std::map<std::string, std::int64_t> wait_at_latch(std::string_view) { return {}; }
  /// A restart without data. False if what it keeps outlives that.
  virtual bool forget() = 0;
  /// The server has stopped: what was in progress is undone.
  virtual void stopped() {}
  /// That process is no more.
  virtual void process_died(const process&) {}
  /// What it keeps for ever, though nobody renews it.
  virtual std::string for_ever() { return {}; }
  /// Drops something that it keeps, and says what.
  virtual std::string lose(std::uint64_t) { return "nothing"; }
};

}  // namespace simulation
