#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "store/redis/resp.hpp"

struct lua_State;

namespace simulation {

/// The part of a Redis server that the library's scripts use, with a real Lua: strings, hashes and
/// sorted sets with times to live, TIME, PUBLISH and EVALSHA. Unknown commands get an error, which
/// a script passes on.
class redis_model {
 public:
  using value = holdfast::store::redis::resp_value;
  /// Returns the number of subscribers that got the message.
  using listener = std::function<int(const std::string& channel, const std::string& text)>;
  using clock = std::function<std::int64_t()>;
  /// Returns the error that answers a write, empty if the write is carried out.
  using refusal = std::function<std::string(bool needs_room)>;

  /// `micros` returns microseconds since 1970.
  redis_model(clock micros, listener publish, refusal refuse);
  ~redis_model();
  redis_model(const redis_model&) = delete;

  void load(std::string_view sha, std::string_view text);
  value run(const std::vector<std::string>& words);

  /// The strings under the keys with that prefix.
  std::vector<std::pair<std::string, std::string>> strings(std::string_view prefix);

  /// The keys with that prefix and an expiry, and when they end, in microseconds.
  std::map<std::string, std::int64_t> ends_of_keys(std::string_view prefix) const;
  /// The keys without an expiry.
  std::string for_ever() const;

  /// Makes a replica that knows the present data and receives nothing after it.
  void replicate() { replica_ = keys_; }
  void fail_over() { keys_ = replica_; }
  void flush() { keys_.clear(), replica_.clear(); }
  std::string lose(std::uint64_t which);
  /// The result of the call, whose changes are undone.
  template <class F>
  auto as_if(F call) {
    const auto before = keys_;
    auto answer = call();
    keys_ = before;
    return answer;
  }

 private:
  using hash = std::map<std::string, std::string>;
  struct sorted_set {
    std::map<std::string, double> score_of;
    std::set<std::pair<double, std::string>> in_order;
  };
  struct entry {
    std::variant<std::string, hash, sorted_set> is;
    std::optional<std::int64_t> ends_at{};
  };
  using words = std::span<const std::string>;
  using command = value (redis_model::*)(words);

  static const std::map<std::string, command, std::less<>>& commands();
  static int call_from_lua(lua_State* lua);
  static int pcall_from_lua(lua_State* lua);
  static int answer_lua(lua_State* lua, bool raise);

  std::string why_not(const std::string& command);
  entry* find(const std::string& key);
  template <class T>
  T* find_as(const std::string& key);  ///< throws if the key has another type
  template <class T>
  T& make(const std::string& key);
  void drop_if_empty(const std::string& key);
  value rank_range(const sorted_set& of, std::int64_t first, std::int64_t last, bool scores) const;
  static bool remove_member(sorted_set& from, const std::string& member);

  value eval(words w);
  value time(words w);
  value publish(words w);
  value get(words w);
  value mget(words w);
  value set(words w);
  value del(words w);
  value pexpire(words w);
  value pttl(words w);
  value hget(words w);
  value hmget(words w);
  value hset(words w);
  value hdel(words w);
  value zadd(words w);
  value zrem(words w);
  value zscore(words w);
  value zrank(words w);
  value zrange(words w);
  value zrangebyscore(words w);
  value zremrangebyscore(words w);
  value zpopmin(words w);
  value zcard(words w);
  value type(words w);
  value exists(words w);
  value hkeys(words w);
  value hgetall(words w);
  value hexists(words w);
  value hincrby(words w);
  value incrby(words w);
  value decrby(words w);

  const clock micros_;
  const listener publish_;
  const refusal refuse_;
  bool has_written_ = false;  ///< by the running script
  std::map<std::string, entry> keys_, replica_;
  std::map<std::string, int, std::less<>> scripts_;
  lua_State* const lua_;
};

}  // namespace simulation
