#include "lease/own_holds.hpp"

#include <pthread.h>
#include <algorithm>
#include <holdfast/lock_order.hpp>
#include <utility>

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
  std::weak_ptr<const owned> what;
  std::uint64_t fence;  ///< each turn at a local queue has its own
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
entry* latest_of(const owned& h) noexcept {
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

}  // namespace

std::optional<std::source_location> current_call_site() noexcept {
  return call_site == nullptr ? std::nullopt : std::optional(*call_site);
}

void note_own(const std::shared_ptr<const owned>& what, own_hold facts) {
  entries* const all = to_note_in();
  if (all == nullptr) return;
  std::erase_if(*all, is_over);
  entry* const known = facts.in_std_style ? latest_of(*what) : nullptr;
  if (known != nullptr) {
    known->facts.in_std_style = true;
  } else {
    all->push_back({what, what->fence(), std::move(facts)});
  }
}

void forget_own(const owned& h) noexcept {
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
