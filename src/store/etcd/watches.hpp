#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/etcd/channel.hpp"

namespace holdfast::store::etcd {

/// All watches of a session: one stream, opened by the first. Thread-safe.
class watches {
 public:
  using alarm = std::function<void()>;

  explicit watches(channel& to);
  /// After this none is called any more.
  ~watches();
  watches(const watches&) = delete;
  watches& operator=(const watches&) = delete;

  /// Calls once, from a thread of gRPC, when something happens to the key (or to one in the range,
  /// if it has an end) – or when it can not be told any more: the member is gone or lost its
  /// leader, the revision was compacted, the watch was refused. Returns when the server watches, so
  /// that what is read after that is not missed: one round trip. (To watch from a revision that was
  /// read before needs no waiting; but if anything was written since, etcd begins with such a watch
  /// up to a tenth of a second later.)
  std::int64_t add(const std::string& key, const std::string& end, alarm call);
  /// That one is not called any more.
  void forget(std::int64_t id);
  void call_all();

 private:
  struct hub;
  class stream;
  std::shared_ptr<hub> hub_;
};

}  // namespace holdfast::store::etcd
