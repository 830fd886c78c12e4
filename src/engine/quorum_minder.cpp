#include <thread>

#include "engine/no_memory.hpp"
#include "engine/no_thread.hpp"
#include "engine/quorum_hold.hpp"

namespace holdfast::engine {

/// What its thread works on: it may outlive the minder, if that ends on it.
struct quorum_minder::shared {
  explicit shared(holdfast::clock& on) : clock(on) {}
  holdfast::clock& clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::weak_ptr<quorum_hold>> holds;
  bool news = false;
  bool stopping = false;
};

std::shared_ptr<quorum_minder> quorum_minder::make(std::shared_ptr<core> of) {
  auto& clock = of->clock();
  return {new quorum_minder(clock), [session = std::move(of)](quorum_minder* m) {
            if (!session->forked()) delete m;
          }};
}

quorum_minder::quorum_minder(holdfast::clock& on) : shared_(std::make_shared<shared>(on)) {}

quorum_minder::~quorum_minder() {
  {
    const std::lock_guard guard{shared_->mutex};
    shared_->stopping = true;
    shared_->changed.notify_all();
  }
  if (!thread_.joinable()) return;
  thread_.get_id() == std::this_thread::get_id() ? thread_.detach() : thread_.join();
}

status quorum_minder::start() noexcept try {
  const std::lock_guard guard{starting_};
  if (!thread_.joinable()) thread_ = std::thread([s = shared_] { run(s); });
  return done{};
} catch (...) {
  return no_thread("to renew leases with");
}

void quorum_minder::add(std::weak_ptr<quorum_hold> h) {
  const std::lock_guard guard{shared_->mutex};
  shared_->holds.push_back(std::move(h));
  shared_->news = true;
  shared_->changed.notify_all();
}

void quorum_minder::wake() {
  const std::lock_guard guard{shared_->mutex};
  shared_->news = true;
  shared_->changed.notify_all();
}

// Whom it looks after may end with what is done here, and the minder with it.
void quorum_minder::run(const std::shared_ptr<shared>& s) {
  std::unique_lock lock{s->mutex};
  while (!s->stopping) {
    s->news = false;
    std::erase_if(s->holds, [](const auto& h) { return h.expired(); });
    boot_time next = forever;
    // Others may be added meanwhile, and no place is taken by another: it needs no copy, and so no
    // memory.
    for (std::size_t i = 0; i < s->holds.size() && !s->stopping; ++i) {
      auto hold = s->holds[i].lock();
      lock.unlock();
      try {
        if (hold) next = std::min(next, hold->look_after());
      } catch (...) {
        next = std::min(next, s->clock.now() + memory_retry);
      }
      hold = nullptr;
      lock.lock();
    }
    while (!s->news && !s->stopping && s->clock.now() < next) {
      s->clock.wait_until(lock, s->changed, next);
    }
  }
}

}  // namespace holdfast::engine
