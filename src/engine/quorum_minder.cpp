#include <system_error>
#include <thread>

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
} catch (const std::system_error& e) {
  return failure{errc::unavailable, std::string("no thread to renew leases with: ") + e.what() +
                                        "; raise the limit of threads (ulimit -u, pids cgroup)"};
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
    const auto holds = s->holds;
    lock.unlock();
    boot_time next = forever;
    for (const auto& one : holds) {
      if (const auto hold = one.lock()) next = std::min(next, hold->look_after());
    }
    lock.lock();
    while (!s->news && !s->stopping && s->clock.now() < next) {
      s->clock.wait_until(lock, s->changed, next);
    }
  }
}

}  // namespace holdfast::engine
