#include "engine/linger_watch.hpp"

#include "engine/no_thread.hpp"
#include "engine/store_client.hpp"

namespace holdfast::engine {

linger_watch::~linger_watch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard{mutex_};
    stopping_ = true;
  }
  notices_->wake();
  thread_.join();
}

status linger_watch::start() noexcept try {
  if (started_.load(std::memory_order_acquire)) return done{};
  const std::lock_guard guard{mutex_};
  if (started_) return done{};
  if (!notices_) notices_.emplace(session_.mailroom());
  thread_ = std::thread([this] { run(); });
  started_.store(true, std::memory_order_release);
  return done{};
} catch (...) {
  return no_thread("to look after idle locks");
}

void linger_watch::look_at(const std::shared_ptr<gate>& at, boot_time when) {
  std::unique_lock lock{mutex_};
  const auto entry = due_.emplace(when, at);
  if (entry != due_.begin()) return;
  lock.unlock();
  notices_->wake();
}

bool linger_watch::stopping() {
  const std::lock_guard guard{mutex_};
  return stopping_;
}

void linger_watch::run() {
  for (boot_time next = forever; !stopping(); next = look_at_due()) {
    if (const auto notice = notices_->wait(next)) wanted_(*notice);
  }
}

// The next time to look.
boot_time linger_watch::look_at_due() {
  std::unique_lock lock{mutex_};
  while (!due_.empty() && due_.begin()->first <= session_.now()) {
    const auto at = due_.extract(due_.begin()).mapped().lock();
    if (!at) continue;
    lock.unlock();
    const auto found = at->lapse();
    if (found.over) found.over->give_back();
    lock.lock();
    if (found.again_at != forever) due_.emplace(found.again_at, at);
  }
  return due_.empty() ? forever : due_.begin()->first;
}

}  // namespace holdfast::engine
