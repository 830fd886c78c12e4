#include "c/lease.hpp"

namespace holdfast::c_abi {

void lease_handle::on_close() noexcept {
  std::shared_ptr<const void> last;  // ends after the release, and without the mutex
  std::unique_ptr<held> what;
  const std::lock_guard guard{mutex_};
  closed_ = true;
  last.swap(session_);
  if (emptied_) return;
  close_to_others();
  gives_up_ = inside_ > 0;
  if (!gives_up_) what = std::move(held_);
}

std::shared_ptr<const void> lease_handle::session_kept() {
  const std::lock_guard guard{mutex_};
  return session_;
}

void lease_handle::require_present() const {
  if (emptied_)
    refuse(errc::not_owner, "the lease was released, or a wait for a condition uses it");
}

void lease_handle::come() {
  const std::lock_guard guard{mutex_};
  require_present();
  ++inside_;
}

void lease_handle::go() noexcept {
  std::unique_lock guard{mutex_};
  if (--inside_ > 0) return;
  nobody_.notify_all();
  if (gives_up_) {
    const auto what = std::move(held_);
    guard.unlock();
    return;
  }
  if (!then_) return;
  const auto then = std::exchange(then_, {});
  auto what = std::move(held_);
  guard.unlock();
  then(std::move(what));
}

void lease_handle::close_to_others() {
  require_present();
  emptied_ = true;
  for (watcher& w : watchers_) w.callback.reset();
}

std::unique_ptr<held> lease_handle::empty() {
  std::unique_lock guard{mutex_};
  close_to_others();
  nobody_.wait(guard, [&] { return inside_ == 0; });
  return std::move(held_);
}

void lease_handle::empty_later(receiver then) {
  std::unique_lock guard{mutex_};
  close_to_others();
  if (inside_ > 0) {
    then_ = std::move(then);
    return;
  }
  auto what = std::move(held_);
  guard.unlock();
  then(std::move(what));
}

bool lease_handle::fill(std::unique_ptr<held> what) {
  const std::lock_guard guard{mutex_};  // destroyed first: releasing `what` takes a round trip
  if (closed_) return false;
  held_ = std::move(what);
  emptied_ = false;
  for (watcher& w : watchers_) begin(w);
  return true;
}

void lease_handle::lost() noexcept {
  const std::lock_guard guard{mutex_};
  for (watcher& w : watchers_) {
    w.callback.reset();
    if (!closed_ && !w.event->empty()) w.to->push(std::move(*w.event));
  }
}

void lease_handle::watch(std::shared_ptr<queue> to, std::uint64_t tag, void* key) {
  const std::lock_guard guard{mutex_};
  require_present();
  prepared loss(1);
  event_of& e = loss.front();
  e.kind = HOLDFAST_LEASE_LOST;
  e.tag = tag;
  e.known = key;
  e.how = failure{errc::lost, "", false, "watch", held_->name()};
  watcher& mine = watchers_.emplace_back(std::move(to), std::move(loss));
  try {
    begin(mine);
  } catch (...) {  // no memory: the caller does not expect the event
    watchers_.pop_back();
    throw;
  }
}

void lease_handle::begin(watcher& w) const {
  w.callback.emplace(held_->lost(), [to = w.to, event = w.event] {
    if (!event->empty()) to->push(std::move(*event));
  });
}

std::shared_ptr<lease_handle> lease_of(const void* key) {
  if (key == nullptr) refuse_handle("lease", key);
  const auto is_one = [](handle& h) { return dynamic_cast<lease_handle*>(&h) != nullptr; };
  if (auto found = look_up(key, is_one))
    return std::static_pointer_cast<lease_handle>(std::move(found));
  refuse(errc::not_owner, "the lease was released before, or the handle is no lease");
}

single& as_single(held& of) {
  if (auto* const one = dynamic_cast<single*>(&of)) return *one;
  refuse(errc::not_owner, "the lease belongs to a multi_lock or a redlock");
}

namespace {

int state_of(lease_state s) {
  switch (s) {
    case lease_state::held:
      return HOLDFAST_HELD;
    case lease_state::suspect:
      return HOLDFAST_SUSPECT;
    default:
      return HOLDFAST_GONE;
  }
}

std::optional<std::chrono::milliseconds> length_of(std::int64_t lease_ms) {
  if (lease_ms == 0) return std::nullopt;
  return std::chrono::milliseconds(lease_ms);
}

/// Starts the release when no call uses the lease any more; that may be at the end of another
/// thread's call.
void release_later(lease_handle& from, waiting w) {
  w.under_way = std::make_shared<call_under_way>(call_under_way::in::a_queue);
  const auto without_memory = prepared_failure(w);
  from.empty_later([w, without_memory](std::unique_ptr<held> what) noexcept {
    try {
      begin(what->begin_release(), w);
    } catch (...) {
      w.to->push(std::move(*without_memory));  // the lease's destructor still releases it
    }
  });
}

}  // namespace

}  // namespace holdfast::c_abi

using namespace holdfast::c_abi;

extern "C" {

int holdfast_lease_info_of(holdfast_lease* lease, holdfast_lease_info* info, holdfast_error* why) {
  return guarded(why, [&] {
    out_struct there(info, "info");
    lease_of(lease)->look([&](held& l) {
      const auto fences = l.fences();
      there->fence = fences.empty() ? 0 : fences.front();
      there->state = state_of(l.state());
      there->remaining_ns = l.remaining().count();
      put_text(there->name, l.name());
      put_text(there->short_id, l.short_id());
    });
  });
}

int holdfast_lease_fences(holdfast_lease* lease, uint64_t* fences, uint32_t* count,
                          holdfast_error* why) {
  return guarded(why, [&] {
    auto& room = out(count, "count");
    const auto found = lease_of(lease)->look([](held& l) { return l.fences(); });
    const auto fits = room;
    room = static_cast<uint32_t>(found.size());
    if (fits < room)
      refuse(holdfast::errc::invalid_argument,
             "fences: count is too small; it now says how many there are");
    std::copy(found.begin(), found.end(), &out(fences, "fences"));
  });
}

int holdfast_lease_check(holdfast_lease* lease, holdfast_error* why) {
  return guarded(why, [&] { lease_of(lease)->look([](held& l) { l.check(); }); });
}

int holdfast_lease_extend(holdfast_lease* lease, int64_t lease_ms, holdfast_error* why) {
  return guarded(why,
                 [&] { lease_of(lease)->with([&](held& l) { l.extend(length_of(lease_ms)); }); });
}

int holdfast_lease_watch(holdfast_lease* lease, holdfast_queue* to, uint64_t tag,
                         holdfast_error* why) {
  return guarded(why, [&] {
    auto told = get<queue>(to, "queue");
    lease_of(lease)->watch(std::move(told), tag, lease);
  });
}

int holdfast_release(holdfast_lease* lease, const holdfast_wait* how, holdfast_error* why) {
  return guarded(why, [&] {
    const call_under_way here(call_under_way::in::a_release);
    const auto w = as_given(how);
    const auto from = lease_of(lease);
    if (w.to) {
      release_later(*from, w);
      (void)take_out(lease);
      return;
    }
    const auto what = from->empty();
    (void)take_out(lease);
    (void)what->release().value();
  });
}

}  // extern "C"
