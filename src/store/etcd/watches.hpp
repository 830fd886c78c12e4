#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/etcd/channel.hpp"

namespace holdfast::store::etcd {

/// All watches of a session: one stream, which the first watch opens. Thread-safe.
class watches {
 public:
  using alarm = std::function<void()>;

  explicit watches(channel& to);
  /// After this no alarm is called any more.
  ~watches();
  watches(const watches&) = delete;
  watches& operator=(const watches&) = delete;

  /// Calls `call` once, from a thread of gRPC, when something happens to the key (or to one in the
  /// range, if there is an end), or when changes can no longer be reported: the member is gone or
  /// has lost its leader, the revision was compacted, the watch was refused. Returns when the
  /// server watches, so that no change after a later read is missed: one round trip. (A watch from
  /// a revision that was read before would need no waiting; but if anything was written since, etcd
  /// begins such a watch up to a tenth of a second later.)
  std::int64_t add(const std::string& key, const std::string& end, alarm call);
  /// Cancels the watch: its alarm is not called any more.
  void forget(std::int64_t id);
  void call_all();

 private:
  struct hub;
  class stream;
  std::shared_ptr<hub> hub_;
};

}  // namespace holdfast::store::etcd
