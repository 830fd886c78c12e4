#include "engine/own_holds.hpp"

#include <pthread.h>
#include <algorithm>
#include <holdfast/lock_order.hpp>
#include <utility>

#include "engine/core.hpp"
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
  own_hold facts;
};
using entries = std::vector<entry>;

// Static objects may lock after this thread's own objects are gone: null again then.
thread_local entries* mine = nullptr;
thread_local bool gone = false;

struct list {
  list() { mine = &all; }
  ~list() {
    mine = nullptr;
    gone = true;
  }
  entries all;
};

// What the parent of a fork() has is not the child's.
void clear_in_children() {
  static const int once = pthread_atfork(nullptr, nullptr, [] {
    if (mine != nullptr) mine->clear();
  });
  (void)once;
}

entries* to_note_in() {
  if (mine != nullptr || gone) return mine;
  clear_in_children();
  thread_local list here;
  return &here.all;
}

// The latest: a thread may be one of several readers twice.
entry* latest_of(const hold& h) noexcept {
  if (mine == nullptr) return nullptr;
  const auto found = std::find_if(mine->rbegin(), mine->rend(),
                                  [&](const entry& e) { return e.what.lock().get() == &h; });
  return found == mine->rend() ? nullptr : &*found;
}

// Whose it is now, another thread's or nobody's, may end it meanwhile: only what outlives its
// session is asked.
bool is_over(const entry& e) {
  const auto h = e.what.lock();
  return !h || h->fence() != e.fence || h->has_ended();
}

void note(const lease& l, bool in_std_style) {
  entries* const all = to_note_in();
  if (all == nullptr) return;
  std::erase_if(*all, is_over);
  const auto& h = hold::shared_behind(l);
  all->push_back({h,
                  h->fence(),
                  {h->session()->url(), h->name(), h->owner(), in_std_style, h->ends_by_itself(),
                   current_call_site()}});
}

}  // namespace

std::optional<std::source_location> current_call_site() noexcept {
  return call_site == nullptr ? std::nullopt : std::optional(*call_site);
}

void note_own(const lease& l) { note(l, false); }

void note_own_in_std_style(const lease& l) {
  entry* const known = latest_of(*hold::behind(l));
  if (known == nullptr || is_over(*known)) return note(l, true);
  known->facts.in_std_style = true;
}

void forget_own(const hold& h) noexcept {
  if (entry* const known = latest_of(h)) mine->erase(mine->begin() + (known - mine->data()));
}

std::vector<own_hold> own_holds() {
  if (mine == nullptr) return {};
  std::erase_if(*mine, is_over);
  std::vector<own_hold> all;
  for (const entry& e : *mine) all.push_back(e.facts);
  return all;
}

}  // namespace engine
}  // namespace holdfast
