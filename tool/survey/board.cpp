#include "tool/survey/board.hpp"

#include <algorithm>

#include "tool/json.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::system_clock;

constexpr std::chrono::seconds want_lasts{10};
constexpr std::size_t max_wanted = 100;
/// Where leases are renewed, only the time changes; changes of this size are shown.
constexpr std::chrono::milliseconds renewal_shown{1000};

system_clock::time_point end_of(const listed_name& n, system_clock::time_point seen) {
  if (n.info.holders.empty()) return seen;
  const auto left = n.info.holders.front().expires_in;
  return left ? seen + *left : system_clock::time_point::max();
}

bool is_in_use(const listed_name& n) { return !n.error.empty() || !n.info.kind.empty(); }

bool same_person(const participant& a, const participant& b) {
  return a.short_id == b.short_id && a.fence == b.fence && a.weight == b.weight &&
         a.since == b.since && a.pid == b.pid && a.host == b.host && a.reason == b.reason &&
         a.program == b.program && a.died == b.died;
}

bool same_people(const std::vector<participant>& a, const std::vector<participant>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_person);
}

bool same_name(const listed_name& a, const listed_name& b) {
  return a.error == b.error && a.info.kind == b.info.kind && a.info.capacity == b.info.capacity &&
         a.info.remaining == b.info.remaining && a.info.last_fence == b.info.last_fence &&
         same_people(a.info.holders, b.info.holders) && same_people(a.info.waiters, b.info.waiters);
}

}  // namespace

void board::renumber(row& r) {
  changes_.erase(r.number);
  gone_.erase(r.number);
  r.number = ++last_;
  changes_.emplace(r.number, &r);
  if (r.gone) gone_.emplace(r.number, &r);
  cached_.reset();
}

void board::forget_old() {
  while (gone_.size() > max_gone) {
    const auto [number, r] = *gone_.begin();
    forgotten_ = number;
    gone_.erase(number);
    changes_.erase(number);
    rows_.erase(std::string(r->name.info.name));
  }
}

void board::note(const row& before, const listed_name& found, system_clock::time_point now) {
  const bool known = before.number != 0 && !before.gone && before.name.error.empty();
  if (!found.error.empty() || !(known || settled_)) return;
  history_.note(known ? before.name.info : name_info{}, found.info, now);
}

bool board::put(listed_name found, system_clock::time_point now) {
  const bool in_use = is_in_use(found);
  const std::lock_guard guard{mutex_};
  auto at = rows_.find(found.info.name);
  if (at == rows_.end()) {
    if (!in_use) return false;
    at = rows_.try_emplace(found.info.name).first;
  }
  row& r = at->second;
  const bool known = r.number != 0 && !r.gone;
  if (!known && !in_use) return false;
  const auto ends = end_of(found, now);
  const bool same =
      known && same_name(r.name, found) && std::chrono::abs(ends - r.shown_end) < renewal_shown;
  if (!same) note(r, found, now);
  r.gone = !in_use;
  r.seen_at = now;
  r.name = std::move(found);
  if (same) return false;
  r.shown_end = ends;
  r.json.clear();
  renumber(r);
  forget_old();
  return true;
}

void board::listed(system_clock::time_point at) {
  const std::lock_guard guard{mutex_};
  listed_at_ = at;
}

system_clock::time_point board::listed_at() const {
  const std::lock_guard guard{mutex_};
  return listed_at_;
}

std::uint64_t board::version() const {
  const std::lock_guard guard{mutex_};
  return last_;
}

void board::settle() {
  const std::lock_guard guard{mutex_};
  settled_ = true;
}

void board::set_health(store_health health) {
  const std::lock_guard guard{mutex_};
  health_ = std::move(health);
}

store_health board::health() const {
  const std::lock_guard guard{mutex_};
  return health_;
}

/// The rows after `upto`, which becomes the number of the last of them.
std::string board::event_of(std::uint64_t& upto) const {
  std::string locks, gone;
  std::size_t rows = 0;
  for (auto at = changes_.upper_bound(upto); at != changes_.end() && rows < max_rows_a_piece;
       ++at, ++rows) {
    row& r = *at->second;
    if (!r.gone && r.json.empty()) r.json = lock_json(r.name, r.seen_at);
    std::string& list = r.gone ? gone : locks;
    if (!list.empty()) list += ',';
    list += r.gone ? json_text(r.name.info.name) : r.json;
    upto = at->first;
  }
  return "event: rows\ndata: {\"store\":" + std::to_string(index_) + ",\"locks\":[" + locks +
         "],\"gone\":[" + gone + "]}\n\n";
}

// A viewer that began after the forgotten removals never had those names.
std::shared_ptr<const std::string> board::since(cursor& viewer) {
  const std::lock_guard guard{mutex_};
  const std::uint64_t number = viewer.number;
  if (number == last_) return nullptr;
  const bool anew = number != 0 && number < forgotten_ && viewer.began < forgotten_;
  if (number == 0 || anew) viewer.began = last_;
  if (!cached_ || cached_from_ != number || cached_anew_ != anew) {
    cached_ = piece_from(number, anew);
    cached_from_ = number;
    cached_anew_ = anew;
  }
  viewer.number = cached_->upto;
  return cached_->text;
}

board::piece board::piece_from(std::uint64_t number, bool anew) const {
  std::string text;
  std::uint64_t upto = number;
  if (anew) {
    text = "event: forget\ndata: {\"store\":" + std::to_string(index_) + "}\n\n";
    upto = 0;
  }
  text += event_of(upto);
  return {upto, std::make_shared<const std::string>(std::move(text))};
}

/// An older state, with the rest of the leases by now.
listed_name board::aged(const row& r, system_clock::time_point now) {
  listed_name n = r.name;
  n.looked_at = r.seen_at;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - r.seen_at);
  for (auto* people : {&n.info.holders, &n.info.waiters})
    for (participant& p : *people)
      if (p.expires_in) p.expires_in = std::max(*p.expires_in - age, std::chrono::milliseconds{0});
  return n;
}

snapshot board::take(system_clock::time_point now) const {
  snapshot all;
  all.store = url_;
  all.taken_at = now;
  {
    const std::lock_guard guard{mutex_};
    all.health = health_;
    all.as_of = listed_at_;
    all.names.reserve(rows_.size() - gone_.size());
    for (const auto& [name, r] : rows_) {
      if (r.gone) continue;
      all.names.push_back(aged(r, now));
      all.as_of = std::min(all.as_of, r.seen_at);
    }
  }
  std::sort(all.names.begin(), all.names.end(),
            [](const auto& a, const auto& b) { return a.info.name < b.info.name; });
  return all;
}

std::optional<board::seen> board::find(std::string_view lock, system_clock::time_point now) const {
  const std::lock_guard guard{mutex_};
  const auto at = rows_.find(std::string(lock));
  if (at == rows_.end() || at->second.gone) return std::nullopt;
  return seen{aged(at->second, now), at->second.seen_at};
}

history::of_name board::history_of(std::string_view lock) const {
  const std::lock_guard guard{mutex_};
  return history_.about(lock);
}

std::vector<std::pair<std::string, std::uint64_t>> board::busiest(std::size_t most) const {
  const std::lock_guard guard{mutex_};
  return history_.busiest(most);
}

void board::want(std::string_view lock, boot_time now) {
  const std::lock_guard guard{mutex_};
  const auto at = wanted_.find(lock);
  if (at == wanted_.end() && wanted_.size() == max_wanted) return;
  wanted_.insert_or_assign(std::string(lock), now + want_lasts);
}

std::vector<std::string> board::wanted(boot_time now) {
  const std::lock_guard guard{mutex_};
  std::erase_if(wanted_, [&](const auto& w) { return w.second < now; });
  std::vector<std::string> names;
  for (const auto& [name, until] : wanted_) names.push_back(name);
  return names;
}

}  // namespace holdfast::tool
