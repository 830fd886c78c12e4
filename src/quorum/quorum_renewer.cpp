#include "quorum/quorum_hold.hpp"
#include "session/no_memory.hpp"
#include "session/sleeper.hpp"

namespace holdfast::engine {

/// The data of its thread, which may outlive the renewer if the renewer is destroyed on that
/// thread.
struct quorum_renewer::shared {
  explicit shared(holdfast::clock& on) : clock(on), thread(on) {}
  holdfast::clock& clock;
  sleeper thread;
  std::mutex mutex;
  std::vector<std::weak_ptr<quorum_hold>> holds;
  bool stopping = false;
};

std::shared_ptr<quorum_renewer> quorum_renewer::make(std::shared_ptr<session_impl> of) {
  auto& clock = of->clock();
  return {new quorum_renewer(clock), [session = std::move(of)](quorum_renewer* m) {
            if (!session->forked()) delete m;
          }};
}

quorum_renewer::quorum_renewer(holdfast::clock& on) : shared_(std::make_shared<shared>(on)) {}

quorum_renewer::~quorum_renewer() {
  {
    const std::lock_guard guard{shared_->mutex};
    shared_->stopping = true;
  }
  wake();
  thread_.is_this_thread() ? thread_.let_go() : thread_.join();
}

status quorum_renewer::start() noexcept {
  return thread_.start("to renew leases with", [s = shared_] { run(s); });
}

void quorum_renewer::add(std::weak_ptr<quorum_hold> h) {
  const std::lock_guard guard{shared_->mutex};
  shared_->holds.push_back(std::move(h));
  wake();
}

void quorum_renewer::wake() { shared_->thread.wake(); }

// A hold may be destroyed during look_after(), and the renewer with it.
void quorum_renewer::run(const std::shared_ptr<shared>& s) {
  std::unique_lock lock{s->mutex};
  while (!s->stopping) {
    std::erase_if(s->holds, [](const auto& h) { return h.expired(); });
    boot_time next = forever;
    // Holds may be added meanwhile, but no index changes, so no copy is needed, which would take
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
    lock.unlock();
    s->thread.sleep(next);
    lock.lock();
  }
}

}  // namespace holdfast::engine
