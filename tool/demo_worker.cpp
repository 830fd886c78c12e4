#include "tool/demo_worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tool/exit_code.hpp"

namespace holdfast::tool::demo {
namespace {

using clock = std::chrono::steady_clock;

using product_locks = std::vector<std::unique_ptr<holdfast::mutex>>;

/// The holdfast part: a session of this process, and a mutex for each product.
product_locks make_locks(const task& t, const catalogue& all) {
  product_locks locks;
  if (t.how != strategy::holdfast_mutex) return locks;
  session_options options;
  options.lease = demo_lease;
  options.name_prefix = t.lock_prefix;
  const session s = open(t.store, options);
  for (const auto& p : all.products) {
    locks.push_back(
        std::make_unique<holdfast::mutex>(s, p.name, lock_options{.reason = "flash sale"}));
  }
  return locks;
}

/// One worker. All strategies do the same work in the same order: read the stock, pay, write the
/// stock that was read less the sold units. They differ only in how they keep other workers away in
/// between.
class buyer {
 public:
  buyer(const task& t, const catalogue& all, board& b, std::size_t worker)
      : task_{t},
        all_{all},
        board_{b},
        worker_{worker},
        shop_{open_shop(t.shop)},
        locks_{make_locks(t, all)} {}

  void finish_what_was_left() {
    const auto left = board_.unfinished(worker_);
    if (!left) return;
    if (shop_->has_sale(all_.orders[*left])) {
      board_.finish(*left, 0);
    } else {
      serve(*left);
    }
  }

  void serve_all() {
    while (const auto next = board_.claim(worker_)) serve(*next);
  }

 private:
  void serve(std::size_t number) {
    const auto taken_up = clock::now();
    while (!attempt(all_.orders[number])) board_.retried();
    enter(phase::idle);
    const auto wait = std::chrono::duration_cast<std::chrono::microseconds>(attempted_ - taken_up);
    board_.finish(number, static_cast<std::uint32_t>(wait.count()));
  }

  bool attempt(const order& o) {
    enter(phase::waiting);
    switch (task_.how) {
      case strategy::no_lock:
        return buy(o, {});
      case strategy::optimistic:
        return buy(o, {.same_version = true});
      case strategy::row_lock:
        return buy_in_a_transaction(o);
      case strategy::holdfast_mutex:
        return buy_under_the_mutex(o);
    }
    return false;
  }

  /// False if the attempt failed.
  bool buy(const order& o, const condition& only_if, holdfast::mutex* held = nullptr) {
    start_buying();
    if (only_if.fence != 0 && !shop_->claim(o.product, only_if.fence)) return false;
    const seen before = shop_->look(o.product);
    const auto units = std::min(o.quantity, before.stock);
    if (units <= 0) return true;  // sold out
    std::this_thread::sleep_for(task_.pause);
    if (held) held->check();
    return shop_->sell(o, units, before, only_if);
  }

  bool buy_in_a_transaction(const order& o) {
    shop_->begin();
    const bool done = buy(o, {});
    shop_->commit();
    return done;
  }

  bool buy_under_the_mutex(const order& o) {
    holdfast::mutex& product = *locks_[o.product];
    const std::lock_guard guard{product};
    try {
      return buy(o, {.fence = product.fence()}, &product);
    } catch (const error& e) {
      if (!e.lease_gone()) throw;
      return false;  // lost while paying, after a stop longer than the lease: nothing was written
    }
  }

  void enter(phase p) { board_.desk_of(worker_).now = p; }

  void start_buying() {
    attempted_ = clock::now();
    enter(phase::buying);
  }

  const task& task_;
  const catalogue& all_;
  board& board_;
  std::size_t worker_;
  std::unique_ptr<shop> shop_;
  product_locks locks_;
  clock::time_point attempted_{};
};

/// Returns when the parent has closed its end.
void wait_for_go(int go) {
  char none = 0;
  while (read(go, &none, 1) < 0 && errno == EINTR) {
  }
}

void say_ready(int ready) {
  if (write(ready, "r", 1) != 1) throw std::system_error{errno, std::generic_category(), "pipe"};
  close(ready);
}

}  // namespace

int work(const task& t, const catalogue& all, board& b, std::size_t worker, int ready, int go) {
  try {
    buyer self{t, all, b, worker};
    say_ready(ready);
    wait_for_go(go);
    self.finish_what_was_left();
    self.serve_all();
    return 0;
  } catch (const error& e) {
    b.give_up(worker, e.what());
    return exit_code::of(e.reason());
  } catch (const std::exception& e) {
    b.give_up(worker, e.what());
    return exit_code::own_failure;
  }
}

}  // namespace holdfast::tool::demo
