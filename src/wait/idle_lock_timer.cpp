#include "wait/idle_lock_timer.hpp"

namespace holdfast::engine {

idle_lock_timer::idle_lock_timer(store_client& session,
                                 std::function<void(const store::notification&)> wanted)
    : session_(session), wanted_(std::move(wanted)), notifications_(session.dispatcher()) {}

idle_lock_timer::~idle_lock_timer() {
  ending_ = true;
  notifications_.wake();
  thread_.join();
}

status idle_lock_timer::start() noexcept {
  return thread_.start("to look after idle locks", [this] {
    (void)wait_until_settled(session_, notifications_, *this, {session_.now(), no_limit}, {});
  });
}

void idle_lock_timer::look_at(const std::shared_ptr<local_queue>& at, boot_time when) {
  std::unique_lock lock{mutex_};
  const auto entry = due_.emplace(when, at);
  if (entry != due_.begin()) return;
  lock.unlock();
  notifications_.wake();
}

// Returns settled() when the session ends. To stop the wait instead would make a failure with a
// text, for which there may be no memory.
request::answer idle_lock_timer::ask(bool) {
  if (ending_) return settled();
  return ask_again({.at = look_at_due()});
}

bool idle_lock_timer::notified(const store::notification& n) {
  wanted_(n);
  return false;
}

// Releases the locks that are due, and returns the next time to look.
boot_time idle_lock_timer::look_at_due() {
  std::unique_lock lock{mutex_};
  while (!due_.empty() && due_.begin()->first <= session_.now()) {
    auto entry = due_.extract(due_.begin());  // reinserted as it is, which takes no memory
    const auto at = entry.mapped().lock();
    if (!at) continue;
    lock.unlock();
    const auto found = at->lapse();
    if (found.over) found.over->give_back();
    lock.lock();
    entry.key() = found.again_at;
    if (found.again_at != forever) due_.insert(std::move(entry));
  }
  return due_.empty() ? forever : due_.begin()->first;
}

}  // namespace holdfast::engine
