#pragma once

#include <chrono>
#include <functional>
#include <holdfast/store/store.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace simulation {

/// What a server that runs the library's own Redis scripts needs of the world.
struct scripts_at {
  std::function<holdfast::store::moment()> time;
  std::function<bool(const holdfast::store::notification&)> tell;
  std::function<bool()> replica_is_told;  ///< after a command
  /// Why a write is refused now, if it is.
  std::function<std::optional<holdfast::failure>(bool needs_room)> refuses;
  /// So long its clients wait for an answer: it is what a driver says that a try takes.
  std::chrono::milliseconds command_timeout;
};

/// A server whose data is a model of Redis, and whose kernel the real scripts on a real Lua.
class scripted : public holdfast::store::session_store {
 public:
  /// A restart without data; or a replica takes over that knows less.
  virtual void forget(bool all) = 0;
  /// Drops what it has of one name, and says which.
  virtual std::string lose(std::uint64_t which) = 0;
  /// The keys that never end.
  virtual std::string for_ever() const = 0;
  /// What it has of one name; as if nobody had asked.
  virtual holdfast::store::permits_record look(std::string_view name) = 0;
  virtual std::optional<std::uint32_t> left_at_latch(std::string_view name) = 0;
  virtual std::map<std::string, std::int64_t> wait_at_latch(std::string_view name) = 0;
};
std::unique_ptr<scripted> make_scripted(scripts_at at);

}  // namespace simulation
