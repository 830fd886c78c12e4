#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

/// PostgreSQL's advisory locks of sessions, as its lock manager gives them: by key and connection,
/// each mode as often as it was asked for. What is queued keeps out what comes later and conflicts
/// with it, even from a connection that holds the lock – unless that one would have to be waited
/// for: it may wait, and passes the others then, but a mere try of it fails.
namespace simulation {

class advisory_locks {
 public:
  /// What the text of a statement asks for.
  enum class asks {
    nothing,  ///< of these
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

  /// False: others are in, or before it.
  bool try_now(int who, const std::string& key, bool shared);
  /// False: it is queued.
  bool take_or_wait(int who, const std::string& key, bool shared);
  bool holds(int who, const std::string& key, bool shared) const;
  /// False: it did not hold it.
  bool give_back(int who, const std::string& key, bool shared);
  void stop_waiting(int who);
  /// The connection has ended.
  void end(int who);
  void end_all() noexcept { all_.clear(); }
  /// Those whose turn has come since the last call.
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
