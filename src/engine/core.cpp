#include "engine/core.hpp"

#include <thread>
#include <utility>

namespace holdfast::engine {

core::core(std::unique_ptr<store::session_store> store, session_options options)
    : store_client(std::move(store), std::move(options)),
      runner_(std::make_unique<engine::runner>(*this)),
      keeper_(std::make_unique<engine::keeper>(*this)),
      linger_watch_(std::make_unique<engine::linger_watch>(
          *this, [this](const store::notice& n) { wanted(n); })),
      deadlock_watch_(this->options().detect_deadlocks
                          ? std::make_unique<engine::deadlock_watch>(*this)
                          : nullptr),
      for_holds_{*this, *keeper_, *linger_watch_} {
  on_answers_to_come([this] { keeper_->expect_answers(); });
}

bool core::on_own_thread() noexcept {
  return keeper_->on_own_thread() || linger_watch_->on_own_thread() || runner_->on_own_thread() ||
         callers().on_own_thread() || (deadlock_watch_ && deadlock_watch_->on_own_thread());
}

std::shared_ptr<core> core::make(std::unique_ptr<store::session_store> store,
                                 session_options options) {
  const auto let_go = [](core* c) {
    if (!c->on_own_thread()) {
      delete c;
    } else {
      try {
        std::thread([c] { delete c; }).detach();
      } catch (...) {
        return;  // no thread to be had: better to leave it than to end the program
      }
    }
  };
  return {new core(std::move(store), std::move(options)), let_go};
}

core::~core() {
  if (!forked()) {
    runner_->close();  // its errands need the keeper, and the keeper's news the runner
    deadlock_watch_.reset();
    linger_watch_.reset();
    keeper_->stop();
    callers().close();  // what they get is given back behind them
    settle();           // answers that are still to come are told to the keeper
    return;
  }
  (void)deadlock_watch_.release();
  (void)linger_watch_.release();
  (void)keeper_.release();
  (void)runner_.release();
}

void core::wanted(const store::notice& n) {
  if (const auto at = gates_.find(n.name)) {
    if (const auto unused = at->wanted(n.owner)) unused->give_back();
  }
  if (const auto at = reader_groups_.find(n.name)) at->wanted(n.owner);
}

}  // namespace holdfast::engine
