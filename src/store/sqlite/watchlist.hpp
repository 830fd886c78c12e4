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

/// The processes that a session wants to see end, each with a descriptor in the inbox's poll. They
/// are kept for a while after the last one stopped watching: a process that was in the way is soon
/// in the way again, and looking at a descriptor costs a twentieth of reading /proc. Thread-safe.
class watchlist {
 public:
  static constexpr std::uint64_t first_key = 2;  ///< smaller ones are the inbox's own

  /// `poll` must stay open as long as this lives.
  watchlist(const peer& self, int poll) : self_(self), poll_(poll) {}

  /// True if it has ended already: then next_ended() has it.
  bool watch(std::string_view who);
  void unwatch(std::string_view who) noexcept;
  bool departed(std::string_view who);

  /// The poll says so.
  void note_end(std::uint64_t key);
  /// One that ended and is still watched; each end is given once for every watch() that was told.
  std::optional<std::string> next_ended();

 private:
  struct watched {
    int times = 0;
    std::uint64_t key = 0;
    file_descriptor process;  ///< none if the end cannot be seen, or was
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
