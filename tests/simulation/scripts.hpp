#pragma once

#include <chrono>
#include <functional>
#include <holdfast/store/store.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace simulation {

/// What a server that runs the library's own Redis scripts needs from the simulated world.
struct scripts_at {
  std::function<holdfast::store::moment()> time;
  std::function<bool(const holdfast::store::notification&)> tell;
  std::function<bool()> replica_is_told;  ///< after a command
  /// The error if a write is refused now.
  std::function<std::optional<holdfast::failure>(bool needs_room)> refuses;
  /// Until when the present command may be carried out, as its client says; empty: for long.
  std::function<std::string()> stamp;
  /// The present command is too late; so are the name's others until then, if it is not zero.
  std::function<void(std::int64_t after)> too_late;
  /// How long its clients wait for an answer, which is the driver's time for one attempt.
  std::chrono::milliseconds command_timeout;
};

/// A server whose data is a model of Redis, and whose kernel is the real scripts on a real Lua.
class scripted : public holdfast::store::session_store {
 public:
  /// A restart without data, or a takeover by a replica that knows less.
  virtual void forget(bool all) = 0;
  /// Drops its data of one name, and returns which.
  virtual std::string lose(std::uint64_t which) = 0;
  /// Keys that end before the holds and queue entries in them.
  virtual std::string ends_too_early() = 0;
  /// Keys of queues in which nobody waits.
  virtual std::string left_of_queues() = 0;
  /// The keys without an expiry.
  virtual std::string for_ever() const = 0;
  /// Its data of one name, read without a trace.
  virtual holdfast::store::permits_record look(std::string_view name) = 0;
  virtual std::optional<std::uint32_t> left_at_latch(std::string_view name) = 0;
  virtual std::map<std::string, std::int64_t> wait_at_latch(std::string_view name) = 0;
  virtual std::vector<std::string> peers_at_latch(std::string_view name) = 0;
};
std::unique_ptr<scripted> make_scripted(scripts_at at);

}  // namespace simulation
