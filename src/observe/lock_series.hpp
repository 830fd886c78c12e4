#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/losses.hpp"
#include "observe/counters.hpp"

namespace holdfast::observe {

/// Like ==, but without a call for short texts, because they are compared for each event.
[[gnu::always_inline]] inline bool same_text(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  const auto alike = [&](auto word, std::size_t at) {
    auto other = word;
    std::memcpy(&word, a.data() + at, sizeof word);
    std::memcpy(&other, b.data() + at, sizeof other);
    return word == other;
  };
  if (a.size() < 4 || a.size() > 16) return a == b;
  if (a.size() < 8) return alike(std::uint32_t{}, 0) && alike(std::uint32_t{}, a.size() - 4);
  return alike(std::uint64_t{}, 0) && alike(std::uint64_t{}, a.size() - 8);
}

/// The labels that identify a series.
struct lock_key {
  std::string_view store;
  std::string_view kind;
  std::string_view group;
  bool operator==(const lock_key& o) const noexcept {
    return same_text(group, o.group) && same_text(kind, o.kind) && same_text(store, o.store);
  }
};

/// The counters of the locks of one key.
struct lock_series {
  explicit lock_series(const lock_key& k) : store(k.store), kind(k.kind), group(k.group) {}
  lock_key key() const noexcept { return {store, kind, group}; }

  const std::string store, kind, group;
  busy_histogram<wait_bounds> acquired, busy;
  histogram<wait_bounds> timed_out, cancelled, failed;
  busy_histogram<hold_bounds> released;
  histogram<hold_bounds> lost, not_released;
  std::atomic<std::uint64_t> leases_lost{0};
  std::array<std::atomic<std::uint64_t>, losses::causes.size()> lost_because{};
};

/// The series of a thread's last event, which is mostly that of the next one as well.
struct recent_series {
  [[gnu::always_inline]] bool is_of(std::uint64_t of_table, std::string_view store,
                                    std::string_view kind,
                                    std::string_view of_name) const noexcept {
    return table == of_table && same_text(of_name, {name.data(), length}) &&
           same_text(kind, series->kind) && same_text(store, series->store);
  }
  void set(std::uint64_t of_table, lock_series& s, std::string_view of_name) noexcept {
    if (of_name.size() > name.size()) return;
    of_name.copy(name.data(), name.size());
    table = of_table;
    length = of_name.size();
    series = &s;
  }

  std::uint64_t table = 0;
  lock_series* series = nullptr;
  std::size_t length = 0;
  std::array<char, 64> name{};
};

/// The series of all keys. A look-up takes no mutex: a series never moves and is never removed, so
/// their number has to be limited.
class lock_table {
 public:
  lock_table() : id_(next_id()), slots_(std::make_unique<std::atomic<lock_series*>[]>(slots)) {}

  /// Null if there is none, or no room for another one.
  lock_series* find(const lock_key& k) const noexcept;
  /// Creates the series if necessary. If there is no room, returns the series of the key "other".
  lock_series& at(const lock_key& k);
  /// Unique among all tables ever made.
  std::uint64_t id() const noexcept { return id_; }
  /// In the order of their first events.
  std::vector<const lock_series*> all() const;

 private:
  static constexpr std::size_t slots = 4096;  // a power of two
  static constexpr std::size_t most = 1000;

  static std::uint64_t next_id() noexcept;
  std::atomic<lock_series*>& slot_of(const lock_key& k) const noexcept;

  const std::uint64_t id_;
  const std::unique_ptr<std::atomic<lock_series*>[]> slots_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<lock_series>> all_;
};

}  // namespace holdfast::observe
