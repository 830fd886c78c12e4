#include "session/session_impl.hpp"

#include <thread>
#include <utility>

namespace holdfast::engine {

session_impl::session_impl(std::unique_ptr<store::session_store> store, session_options options)
    : store_client(std::move(store), std::move(options)),
      runner_(std::make_unique<engine::runner>(*this)),
      runner_of_several_(std::make_unique<engine::runner>(*this, engine::runner::hears::nothing)),
      keeper_(std::make_unique<engine::keeper>(*this)),
      idle_lock_timer_(std::make_unique<engine::idle_lock_timer>(
          *this, [this](const store::notification& n) { wanted(n); })),
      deadlock_watch_(this->options().detect_deadlocks
                          ? std::make_unique<engine::deadlock_watch>(*this)
                          : nullptr),
      for_holds_{*this, *keeper_} {
  on_answers_to_come([this] { keeper_->expect_answers(); });
}

bool session_impl::on_own_thread() noexcept {
  return keeper_->on_own_thread() || idle_lock_timer_->on_own_thread() ||
         callers().on_own_thread() || (deadlock_watch_ && deadlock_watch_->on_own_thread());
}

std::shared_ptr<session_impl> session_impl::make(std::unique_ptr<store::session_store> store,
                                                 session_options options) {
  const auto let_go = [](session_impl* c) {
    if (!c->on_own_thread()) {
      delete c;
    } else {
      try {
        std::thread([c] { delete c; }).detach();
      } catch (...) {
        return;  // no thread available: leaking the session is better than ending the program
      }
    }
  };
  return {new session_impl(std::move(store), std::move(options)), let_go};
}

session_impl::~session_impl() {
  if (!forked()) {
    // The runners' operations need the keeper, and the keeper's events need the runner.
    runner_of_several_->close();
    runner_->close();
    deadlock_watch_.reset();
    idle_lock_timer_.reset();
    keeper_->stop();
    callers().close();  // the keeper releases afterwards whatever these calls acquire
    try {
      settle();  // pending answers are passed to the keeper
    } catch (...) {
      // No memory for the answers: what they are about ends with its lease.
    }
    return;
  }
  (void)deadlock_watch_.release();
  (void)idle_lock_timer_.release();
  (void)keeper_.release();
  (void)runner_.release();
  (void)runner_of_several_.release();
}

void session_impl::wanted(const store::notification& n) {
  if (const auto at = local_queues_.find(n.name)) {
    if (const auto unused = at->wanted(n.owner)) unused->give_back();
  }
  if (const auto at = reader_groups_.find(n.name)) at->wanted(public_fence(n.fence));
}

}  // namespace holdfast::engine
