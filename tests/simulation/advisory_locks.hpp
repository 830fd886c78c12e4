#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

/// PostgreSQL's advisory locks of sessions, as its lock manager grants them: by key and connection,
/// each mode as often as it was requested. A queued request keeps out later requests that conflict
/// with it, even those of a connection that holds the lock. Exception: if the queued request would
/// have to wait for that connection, a later wait of the connection passes it; a mere try still
/// fails.
namespace simulation {

class advisory_locks {
 public:
  /// The operation that the text of a statement requests.
  enum class asks {
    nothing,  ///< none of these
    try_exclusive,
    try_shared,
    wait_exclusive,
    wait_shared,
    unlock_exclusive,
    unlock_shared,
    raise,
    lower,
    cancel,
    ping,
    users,
    set,
  };
  static asks of(const std::string& text);

  /// False if conflicting requests hold the lock or are queued before this one.
  bool try_now(int who, const std::string& key, bool shared);
  /// False if the request was queued.
  bool take_or_wait(int who, const std::string& key, bool shared);
  bool holds(int who, const std::string& key, bool shared) const;
  /// False if the connection did not hold the lock.
  bool give_back(int who, const std::string& key, bool shared);
  void stop_waiting(int who);
  /// Releases all locks of a connection that has ended.
  void end(int who);
  void end_all() noexcept { all_.clear(); }
  /// The connections that got a lock since the last call.
  std::vector<int> let_in();

  struct user {
    int who = 0;
    bool holds = false;
    bool shared = false;
  };
  std::vector<user> users_of(const std::string& key) const;
  std::vector<std::string> names() const;
  std::vector<std::string> held_by(int who) const;

 private:
  struct counts {
    unsigned exclusive = 0;
    unsigned shared = 0;
  };
  struct waiting {
    int who = 0;
    bool shared = false;
  };
  struct lock {
    std::map<int, counts> held;
    std::deque<waiting> queue;
  };
  static bool conflicts_with_holders(const lock& l, int who, bool shared);
  static void grant(lock& l, int who, bool shared);

  std::map<std::string, lock> all_;
};

}  // namespace simulation
