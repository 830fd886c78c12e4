#include "observe/store_series.hpp"

namespace holdfast::observe {

std::string_view to_string(operation op) noexcept {
  static constexpr std::array<std::string_view, operations> names{
      "acquire", "renew",     "release", "resize", "evict", "inspect",
      "notify",  "countdown", "rate",    "admit",  "names", "batch"};
  return names[static_cast<std::size_t>(op)];
}

std::string_view word_of(errc code) noexcept {
  static constexpr std::array<std::string_view, 21> words{
      "busy",        "timed_out",    "cancelled",        "lost",          "not_owner",
      "unavailable", "overloaded",   "deadlock",         "kind_mismatch", "capacity_mismatch",
      "unsupported", "invalid_name", "invalid_argument", "foreign_data",  "newer_format",
      "corrupt",     "read_only",    "no_space",         "not_permitted", "forked",
      "internal"};
  static_assert(words.size() == static_cast<std::size_t>(errc::internal));
  const auto i = static_cast<std::size_t>(code) - 1;
  return i < words.size() ? words[i] : "unknown";
}

std::shared_ptr<store_series> store_table::at(std::string_view url) {
  const std::lock_guard guard{mutex_};
  auto found = all_.find(url);
  if (found == all_.end() && all_.size() >= most) {
    url = "other";
    found = all_.find(url);
  }
  if (found != all_.end()) return found->second;
  return all_.emplace(url, std::make_shared<store_series>(url)).first->second;
}

std::vector<std::shared_ptr<const store_series>> store_table::all() const {
  const std::lock_guard guard{mutex_};
  std::vector<std::shared_ptr<const store_series>> copy;
  copy.reserve(all_.size());
  for (const auto& [url, one] : all_) copy.push_back(one);
  return copy;
}

}  // namespace holdfast::observe
