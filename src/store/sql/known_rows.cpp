#include "store/sql/known_rows.hpp"

namespace holdfast::store::sql {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t most_rows = 1'024;
constexpr std::size_t longest_record = 4'096;
// Two good clocks differ by less than a millisecond after this time.
constexpr auto clock_is_known_for = 10s;

}  // namespace

bool known_rows::clock_ages() {
  const std::lock_guard guard{mutex_};
  return boot_clock::now() - heard_ > clock_is_known_for / 2;
}

std::optional<row> known_rows::guess(std::string_view name, std::int64_t server) {
  const auto now = boot_clock::now();
  const std::lock_guard guard{mutex_};
  const auto found = rows_.find(name);
  const bool known = server == server_ && now - heard_ <= clock_is_known_for;
  if (!known || found == rows_.end() || !found->second.ours) return std::nullopt;
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now - heard_).count();
  return row{true, found->second.version, found->second.record, server_at_ + since,
             found->second.fence_floor};
}

void known_rows::learn(std::string_view name, std::int64_t found, row now, std::int64_t server) {
  const std::lock_guard guard{mutex_};
  if (server != server_) return;
  auto at = rows_.find(name);
  if (!now.there || now.record.size() > longest_record) {
    if (at != rows_.end()) rows_.erase(at);
    return;
  }
  const bool ours = at == rows_.end() || at->second.version == found;
  if (at == rows_.end()) {
    if (rows_.size() >= most_rows) rows_.clear();
    at = rows_.emplace(name, entry{}).first;
  }
  at->second = {now.version, std::move(now.record), now.fence_floor, ours};
}

void known_rows::forget(std::int64_t server) noexcept {
  const std::lock_guard guard{mutex_};
  server_ = server;
  rows_.clear();
}

void known_rows::clock_said(std::int64_t now_at, boot_time sent, std::int64_t server) {
  const std::lock_guard guard{mutex_};
  if (sent < heard_ || server != server_) return;
  server_at_ = now_at;
  heard_ = sent;
}

}  // namespace holdfast::store::sql
