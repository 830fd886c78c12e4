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

using entries = std::vector<own_hold>;

// Null before the first entry, and again at the thread's end: static objects may lock after this
// thread's own objects are gone.
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

// A forked child does not have the parent's holds.
void clear_in_children() {
  static const int once = pthread_atfork(nullptr, nullptr, [] {
    if (mine != nullptr) mine->clear();
  });
  (void)once;
}

entries* to_note_in() {
  if (mine != nullptr || gone) return mine;
  clear_in_children();
  static thread_local list here;
  return &here.all;
}

// The latest entry: a thread may be one of several readers twice.
own_hold* latest_of(const owned& h) noexcept {
  if (mine == nullptr) return nullptr;
  const auto found = std::find_if(mine->rbegin(), mine->rend(),
                                  [&](const own_hold& e) { return e.what.lock().get() == &h; });
  return found == mine->rend() ? nullptr : &*found;
}

}  // namespace

std::optional<std::source_location> current_call_site() noexcept {
  return call_site == nullptr ? std::nullopt : std::optional(*call_site);
}

// Another thread, or none, may have the hold by now, and may end it meanwhile. So this only reads
// what outlives the session.
bool own_hold::is_over() const {
  const auto h = what.lock();
  return !h || h->turn() != turn || h->has_ended();
}

void note_own(const std::shared_ptr<const owned>& what, own_hold it) {
  entries* const all = to_note_in();
  if (all == nullptr) return;
  std::erase_if(*all, [](const own_hold& h) { return h.is_over(); });
  own_hold* const known = it.in_std_style ? latest_of(*what) : nullptr;
  if (known != nullptr) {
    known->in_std_style = true;
    return;
  }
  it.what = what;
  it.turn = what->turn();
  all->push_back(std::move(it));
}

void forget_own(const owned& h) noexcept {
  if (own_hold* const known = latest_of(h)) mine->erase(mine->begin() + (known - mine->data()));
}

void each_own_hold(const std::function<void(const own_hold&)>& visit) {
  if (mine == nullptr) return;
  std::erase_if(*mine, [](const own_hold& h) { return h.is_over(); });
  for (const own_hold& h : *mine) visit(h);
}

}  // namespace engine
}  // namespace holdfast
