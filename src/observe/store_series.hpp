#pragma once

#include <array>
#include <holdfast/error.hpp>
#include <holdfast/observer.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/counters.hpp"

namespace holdfast::observe {

/// The operations of a session at a store.
enum class operation : std::uint8_t {
  acquire,
  renew,
  release,
  resize,
  evict,
  inspect,
  notify,  // as store::permits_verb
  countdown,
  rate,
  admit,
  names,
  batch
};
inline constexpr std::size_t operations = 12;
std::string_view to_string(operation op) noexcept;
/// The code's name in a program: "unavailable".
std::string_view word_of(errc code) noexcept;

/// The counters of one store.
struct store_series {
  explicit store_series(std::string_view url) : store(url) {}

  // If there is no memory for a new entry, the failure is not counted: the answer matters more.
  void failed(operation op, errc why) noexcept try {
    const std::lock_guard guard{mutex};
    ++errors[{op, why}];
  } catch (...) {
    return;
  }
  void happened(event_kind kind) noexcept try {
    const std::lock_guard guard{mutex};
    ++events[kind];
  } catch (...) {
    return;
  }

  const std::string store;
  std::atomic<std::uint64_t> renewed{0}, renew_failed{0};
  histogram<margin_bounds> margin;
  histogram<pause_bounds> paused;
  std::array<busy_histogram<operation_bounds>, operations> took;

  mutable std::mutex mutex;  // guards the rare counters
  std::map<std::pair<operation, errc>, std::uint64_t> errors;
  std::map<event_kind, std::uint64_t> events;
};

/// The series of all stores; of the first few, and one for the rest.
class store_table {
 public:
  std::shared_ptr<store_series> at(std::string_view url);
  std::vector<std::shared_ptr<const store_series>> all() const;

 private:
  static constexpr std::size_t most = 64;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<store_series>, std::less<>> all_;
};

}  // namespace holdfast::observe
