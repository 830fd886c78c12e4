#include "observe/lock_series.hpp"

#include <functional>

namespace holdfast::observe {

namespace {

constexpr lock_key for_the_rest{"other", "other", "other"};

// A program has few stores and few kinds of locks, so their lengths are enough.
std::size_t hash_of(const lock_key& k) noexcept {
  constexpr std::hash<std::string_view> hash;
  return hash(k.group) + 31 * k.kind.size() + 131 * k.store.size();
}

}  // namespace

// The slot of the key, or the empty slot where it belongs. There are four times as many slots as
// series.
std::atomic<lock_series*>& lock_table::slot_of(const lock_key& k) const noexcept {
  std::size_t i = hash_of(k) % slots;
  while (true) {
    const lock_series* const found = slots_[i].load(std::memory_order_acquire);
    if (found == nullptr || found->key() == k) return slots_[i];
    i = (i + 1) % slots;
  }
}

std::uint64_t lock_table::next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

lock_series* lock_table::find(const lock_key& k) const noexcept {
  return slot_of(k).load(std::memory_order_acquire);
}

lock_series& lock_table::at(const lock_key& k) {
  const std::lock_guard guard{mutex_};
  if (auto* const there = find(k)) return *there;
  const lock_key& key = all_.size() < most ? k : for_the_rest;
  if (auto* const there = find(key)) return *there;
  all_.push_back(std::make_unique<lock_series>(key));
  slot_of(key).store(all_.back().get(), std::memory_order_release);
  return *all_.back();
}

std::vector<const lock_series*> lock_table::all() const {
  const std::lock_guard guard{mutex_};
  std::vector<const lock_series*> copy;
  copy.reserve(all_.size());
  for (const auto& one : all_) copy.push_back(one.get());
  return copy;
}

}  // namespace holdfast::observe
