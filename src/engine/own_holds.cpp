#include "engine/own_holds.hpp"

#include <algorithm>
#include <holdfast/lock_order.hpp>
#include <utility>

#include "engine/hold.hpp"

namespace holdfast {

namespace {
thread_local const std::source_location* call_site = nullptr;
}

called_from::called_from(std::source_location at) noexcept : at_(at), before_(call_site) {
  call_site = &at_;
}

called_from::~called_from() { call_site = before_; }

namespace engine {

namespace {

struct entry {
  std::weak_ptr<hold> what;
  std::uint64_t fence;  ///< each turn at a gate has its own
  bool in_std_style;
  std::optional<std::source_location> taken_at;
};

thread_local std::vector<entry> entries;

// The latest: a thread may be one of several readers twice.
auto latest_of(const hold* h) {
  return std::find_if(entries.rbegin(), entries.rend(),
                      [&](const entry& e) { return e.what.lock().get() == h; });
}

bool is_over(const entry& e) {
  const auto h = e.what.lock();
  if (!h || h->fence() != e.fence) return true;
  const lease_state s = h->state();
  return s == lease_state::lost || s == lease_state::released;
}

void note(const lease& l, bool in_std_style) {
  const auto h = hold::shared_behind(l);
  if (const auto known = latest_of(h.get()); known != entries.rend() && !is_over(*known)) {
    known->in_std_style = known->in_std_style || in_std_style;
    return;
  }
  std::erase_if(entries, is_over);
  entries.push_back({h, h->fence(), in_std_style, current_call_site()});
}

}  // namespace

std::optional<std::source_location> current_call_site() noexcept {
  return call_site == nullptr ? std::nullopt : std::optional(*call_site);
}

void note_own(const lease& l) { note(l, false); }
void note_own_in_std_style(const lease& l) { note(l, true); }

void forget_own(const lease& l) noexcept {
  const auto known = latest_of(hold::behind(l));
  if (known != entries.rend()) entries.erase(std::next(known).base());
}

std::vector<own_hold> own_holds() {
  std::erase_if(entries, is_over);
  std::vector<own_hold> all;
  for (const entry& e : entries) {
    if (auto h = e.what.lock()) all.push_back({std::move(h), e.in_std_style, e.taken_at});
  }
  return all;
}

}  // namespace engine
}  // namespace holdfast
