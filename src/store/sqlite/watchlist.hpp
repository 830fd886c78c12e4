#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "store/sqlite/file_descriptor.hpp"
#include "store/sqlite/peer.hpp"

namespace holdfast::store::sqlite {

/// The processes whose end a session wants to see, each with a descriptor in the inbox's poll. An
/// entry stays for a while after the last watcher has gone: a process that blocked a waiter soon
/// does so again, and polling a descriptor costs a twentieth of reading /proc. Thread-safe.
class watchlist {
 public:
  static constexpr std::uint64_t first_key = 2;  ///< smaller ones are the inbox's own

  /// `poll` must stay open as long as this lives.
  watchlist(const peer& self, int poll) : self_(self), poll_(poll) {}

  /// True if the process has ended already: then next_ended() returns it.
  bool watch(std::string_view who);
  void unwatch(std::string_view who) noexcept;
  bool departed(std::string_view who);

  /// Called when the poll reports the end of a process.
  void note_end(std::uint64_t key);
  /// A process that has ended and is still watched; each end is returned once for every watch()
  /// call.
  std::optional<std::string> next_ended();

 private:
  struct watched {
    int times = 0;
    std::uint64_t key = 0;
    file_descriptor process;  ///< none if the end cannot be watched, or has been seen
    bool ended = false;
  };
  using entries = std::map<std::string, watched, std::less<>>;

  bool has_departed(std::string_view who) const noexcept;
  entries::iterator find_or_add(std::string_view who);
  void start_looking(watched& entry, const std::string& who);
  void stop_looking(watched& entry) noexcept;
  void drop_unwatched() noexcept;

  const peer self_;
  const int poll_;
  std::mutex mutex_;
  entries entries_;
  std::map<std::uint64_t, entries::iterator> by_key_;
  std::deque<std::string> ended_;
  std::uint64_t next_key_ = first_key;
};

}  // namespace holdfast::store::sqlite
