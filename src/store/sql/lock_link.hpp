#pragma once

#include <cstdint>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store::sql {

enum class lock_mode : std::uint8_t { shared, exclusive };

/// A connection that holds a lock or waits for one, as the server reports it.
struct lock_user {
  std::int64_t connection = 0;
  bool holds = false;
  bool shared = false;
  std::string host{};
  std::string program{};
};

/// One connection to a server that gives locks to connections and releases them when a connection
/// ends. For one thread at a time. Each function is one round trip unless noted otherwise. A moment
/// is the server's time in microseconds since 1970, read after the lock was acquired.
class lock_link {
 public:
  virtual ~lock_link() = default;

  /// False: the connection broke. Its locks are free, or will be when the server notices.
  virtual bool usable() const noexcept = 0;
  /// Ends the connection: its locks are free as soon as the server notices. No round trip.
  virtual void drop() noexcept = 0;
  virtual int fd() const noexcept = 0;
  /// The server's number for this connection …
  virtual std::int64_t id() const noexcept = 0;
  /// … which is valid during one life of the server: after a restart the server gives the number to
  /// another connection, and so does another server behind the same address.
  virtual const std::string& life_of_server() const noexcept = 0;

  /// The moment, if the lock was free; otherwise nothing.
  virtual result<std::optional<std::int64_t>> try_lock(std::string_view name, lock_mode mode) = 0;
  /// False: this connection did not hold the lock.
  virtual result<bool> unlock(std::string_view name, lock_mode mode) = 0;
  /// Changes from the other mode to this one, without releasing in between. Nothing: there are
  /// other holders.
  virtual result<std::optional<std::int64_t>> change(std::string_view name, lock_mode to) = 0;

  /// Begins to wait. No round trip: until end() nothing else may be sent here.
  virtual status begin(std::string_view name, lock_mode mode) = 0;
  /// Whether the wait has ended, or the connection. No round trip.
  virtual bool over() noexcept = 0;
  /// The moment; nothing if the wait was interrupted.
  virtual result<std::optional<std::int64_t>> end() = 0;
  /// Ends the wait of another connection, if it still waits.
  virtual status interrupt(const lock_link& other) = 0;

  virtual status ping() = 0;
  /// The users of a name, as far as this user may see them: holders, then waiters, in order.
  virtual result<std::vector<lock_user>> users(std::string_view name) = 0;
};

using connect_lock_link = std::function<result<std::unique_ptr<lock_link>>()>;

}  // namespace holdfast::store::sql
