#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/option.hpp"

namespace holdfast::store::redis {

using base::address;

enum class topology : std::uint8_t { single, sentinel, cluster };

/// The layout of the keys: holdfast's own, or that of other programs (dialect_store.hpp).
enum class dialect : std::uint8_t { none, redlock, redisson, setnx };
std::string_view name_of(dialect d);  ///< as in ?dialect=; not for `none`

/// How many replicas must acknowledge a grant: none, so many that they and the primary are more
/// than half of all, all, or a number. The configuration gives the number of replicas: on the small
/// side of a network split, a primary sees fewer of them.
enum class acknowledgement : std::uint8_t { any, majority, all, number };

/// The server at the end of a connection: another server may have taken over its address.
struct whereabouts {
  address at{};
  std::uint64_t process = 0;  ///< from its run_id; 0 if unknown
  boot_time since{};
};

/// The address of the server, and how to talk to it. Paths are those of PEM files.
struct redis_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  std::string unix_path{};  ///< instead of host and port
  bool tls = false;
  std::string user{};
  std::string password{};
  bool empty_password = false;  ///< explicitly empty: user:@host
  unsigned database = 0;
  std::string ca{};    ///< empty: the machine's own authorities
  std::string cert{};  ///< a client certificate, with its key
  std::string key{};
  std::string server_name{};        ///< the certificate's expected host; empty: the host
  std::string prefix = "holdfast";  ///< of keys and channels
  redis::dialect dialect = dialect::none;
  std::string dialect_prefix{};     ///< put in front of each name; may be empty
  bool redisson_fenced = false;     ///< its mutexes are RFencedLocks
  bool setnx_milliseconds = false;  ///< the value's unit; otherwise seconds
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds command_timeout{2'000};
  redis::topology topology = topology::single;
  std::vector<address> seeds{};  ///< the sentinels; nodes of the cluster, of which one must answer
  std::string primary_name{};    ///< as the sentinels name it
  std::string sentinel_user{};
  std::string sentinel_password{};
  acknowledgement ack = acknowledgement::any;
  unsigned ack_number = 0;
  unsigned replicas = 0;  ///< of each primary, connected or not; 0: not given
  std::chrono::milliseconds ack_timeout{1'000};
  /// How many replicas have to acknowledge; 0: none.
  unsigned replicas_wanted() const noexcept;
  /// The server that gets the commands now, for the connection for notifications to follow. Empty
  /// in a cluster.
  std::function<whereabouts()> commands_at{};
  std::function<void(const whereabouts&)>
      commands_go_to{};  ///< called after each connection for commands
  /// Called before each connection to find the server's address; empty: host and port. Ends at a
  /// time, or when the eventfd is ready.
  std::function<result<address>(boot_time until, int wake_fd)> locate{};
  /// Called if the server at that address is of no use. Behind sentinels, `locate` asks another one
  /// first from then on. May be empty.
  std::function<void()> doubt{};
  /// Whether that address still receives notifications; empty: always.
  std::function<bool(const address&)> told_at{};
  /// The prefix of a name's key.
  const std::string& key_prefix() const noexcept {
    return dialect == dialect::none ? prefix : dialect_prefix;
  }
  std::string url{};                       ///< for messages: without the password
  holdfast::clock* clock = &real_clock();  ///< measures the waits of receive()
  /// Called once, by open(), with what a person should know about the server. May be empty.
  std::function<void(std::string_view)> warn{};
};

/// `redis://user:password@host:port/database`, `redis+unix://user:password@/path/of/socket`,
/// `redis+sentinel://user:password@host:port,host:port/name/database`, the same without the end for
/// redis+cluster; rediss for TLS. The password never comes back in a message.
result<redis_options> read_options(const base::store_url& u);

}  // namespace holdfast::store::redis
