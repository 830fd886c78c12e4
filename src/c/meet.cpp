#include <atomic>
#include <holdfast/barrier.hpp>
#include <holdfast/condition_variable.hpp>
#include <holdfast/latch.hpp>

#include "c/lease.hpp"
#include "c/session.hpp"

namespace holdfast::c_abi {

using condition_handle = handle_of<condition_variable>;

using latch_handle = named<latch>;

struct barrier_handle final : named<barrier> {
  using named::named;
  void on_close() noexcept override { waits.end(); }

  ends_its_waits waits{};
};

struct arrival_handle final : handle {
  arrival_handle(std::shared_ptr<barrier_handle> of, barrier::arrival a)
      : at(std::move(of)), itself(std::move(a)) {}
  const std::shared_ptr<barrier_handle> at;
  barrier::arrival itself;

  void begin_to_wait() {
    if (waited_for_.exchange(true))
      refuse(errc::invalid_argument, "arrival: another call is in progress");
  }
  void end() noexcept { waited_for_ = false; }

 private:
  std::atomic<bool> waited_for_{false};
};

namespace {

/// A wait for a condition, which uses the lease meanwhile.
class condition_wait {
 public:
  explicit condition_wait(void* key) : of_(lease_of(key)), key_(key) {
    of_->look([](held& l) {
      if (!as_single(l).of_a_mutex())
        refuse(errc::not_owner, "the lease does not belong to a mutex");
    });
  }

  /// Starts the wait with the lease; if it throws, the lease stays `taken`'s.
  static pending<woken> start(condition_variable& cv, held& taken, const waiting& w) {
    return async_wait(cv, std::move(as_single(taken).itself()), w.limit, w.stop);
  }
  lease_handle& at() const noexcept { return *of_; }
  void* key() const noexcept { return key_; }
  /// Puts the lease back into the handle. Returns 1 if the condition was notified. Fails if the
  /// lease was closed meanwhile: then the mutex is not held.
  result<std::uint32_t> take_back(woken&& got) const {
    if (!of_->fill(as_held(std::move(got.held), true))) {
      return failure{errc::cancelled, "the lease was closed during the wait", false, "wait"};
    }
    return got.status == std::cv_status::no_timeout ? 1U : 0U;
  }
  /// Removes the handle: the mutex is not held.
  void give_up() const {
    (void)take_out(key_);
    of_->lost();
  }

 private:
  std::shared_ptr<lease_handle> of_;
  void* key_;
};

/// Starts the wait when no call uses the lease any more; that may be at the end of another thread's
/// call. The time limit counts from now.
void begin_condition_wait(std::shared_ptr<condition_handle> of, const condition_wait& mine,
                          const waiting& w) {
  const boot_time deadline = saturated_add(boot_clock::now(), w.limit);
  const auto without_memory = prepared_failure(w);
  mine.at().empty_later([of = std::move(of), mine, w = waiting(w), deadline,
                         without_memory](std::unique_ptr<held> taken) mutable noexcept {
    try {
      if (w.limit != no_limit) w.limit = std::max(wait_time{}, deadline - boot_clock::now());
      begin(
          condition_wait::start(of->itself, *taken, w), w,
          [mine](woken&& got, event_of& e) {
            auto notified = mine.take_back(std::move(got));
            if (!notified) {
              e.how = std::move(notified.error());
              return;
            }
            e.number = *notified;
            e.known = mine.key();
          },
          [mine] { mine.give_up(); });
    } catch (...) {
      mine.give_up();
      w.to->push(std::move(*without_memory));
    }
  });
}

std::uint32_t wait_now(condition_variable& cv, const condition_wait& mine, const waiting& w) {
  const auto kept = mine.at().session_kept();  // even if the lease is closed meanwhile
  const auto taken = mine.at().empty();
  try {
    auto how = condition_wait::start(cv, *taken, w).future().get();
    auto notified = how ? mine.take_back(std::move(*how)) : std::move(how.error());
    if (notified) return *notified;
    throw_failure(std::move(notified.error()));
  } catch (...) {
    mine.give_up();
    throw;
  }
}

/// Exists while a call waits for the arrival. is_over() closes the arrival.
class barrier_wait {
 public:
  barrier_wait(std::shared_ptr<arrival_handle> mine, void* key)
      : mine_(std::move(mine)), key_(key) {
    mine_->begin_to_wait();
  }
  barrier_wait(const barrier_wait&) = delete;
  ~barrier_wait() { mine_->end(); }
  void is_over() const { (void)take_out(key_); }
  pending<done> start(const waiting& w) const {
    const std::shared_ptr<barrier::arrival> itself(mine_, &mine_->itself);
    return async_wait(mine_->at->itself, itself, w.limit, w.stop);
  }

 private:
  const std::shared_ptr<arrival_handle> mine_;
  void* const key_;
};

status wait_now(const std::shared_ptr<arrival_handle>& mine, void* key, const waiting& w) {
  const barrier_wait here(mine, key);
  status how = here.start(w).future().get();  // its failure says how many had arrived
  if (how || how.error().code == errc::lost) here.is_over();
  return how;
}

/// After the event, another wait for this arrival may begin.
void begin_barrier_wait(const std::shared_ptr<arrival_handle>& mine, void* key, waiting w) {
  mine->at->waits.also_end(w);
  auto here = std::make_shared<barrier_wait>(mine, key);
  auto started = here->start(w);
  prepared one(1);
  one.front().tag = w.tag;
  std::move(started).start([w, one = std::move(one), here = std::move(here)](status how) mutable {
    if (how || how.error().code == errc::lost) here->is_over();
    here.reset();
    if (!how) one.front().how = std::move(how.error());
    w.to->push(std::move(one));
  });
}

/// For operations that have only an asynchronous form: runs one over the queue; without a queue,
/// this thread waits for its end. The limit and the stop apply to the whole operation.
int begin_or_await(holdfast_barrier* barrier, const holdfast_wait* how, holdfast_error* why,
                   pending<done> (*start)(holdfast::barrier&, wait_limit, std::stop_token)) {
  return guarded(why, [&]() -> status {
    auto w = read(how);
    const visit here(w.to ? barrier : nullptr);
    const auto of = get<barrier_handle>(barrier, "barrier");
    of->waits.also_end(w);
    auto what = start(of->itself, w.limit, w.stop);
    if (!w.to) return std::move(what).future().get();
    begin(std::move(what), w);
    return done{};
  });
}

}  // namespace

}  // namespace holdfast::c_abi

using namespace holdfast::c_abi;

extern "C" {

int holdfast_latch_open(holdfast_session* session, const char* name, uint32_t count, int64_t keep_s,
                        holdfast_latch** latch, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(latch, "latch");
    holdfast::latch_options o;
    if (keep_s != 0) o.keep = std::chrono::seconds(keep_s);
    give(&there, std::make_shared<latch_handle>(session_visit(session).itself(),
                                                text_of(name, "name"), count, o));
  });
}

int holdfast_latch_count_down(holdfast_latch* latch, uint32_t n, const holdfast_wait* how,
                              holdfast_error* why) {
  return guarded(why, [&] {
    const auto w = read(how);
    const visit here(w.to ? latch : nullptr);
    const auto of = get<latch_handle>(latch, "latch");
    w.to ? begin(async_count_down(of->itself, n), w) : of->itself.count_down(n);
  });
}

int holdfast_latch_wait(holdfast_latch* latch, const holdfast_wait* how, holdfast_error* why) {
  return guarded(why, [&]() -> holdfast::status {
    const auto w = read(how);
    const visit here(w.to ? latch : nullptr);
    const auto of = get<latch_handle>(latch, "latch");
    if (w.to) {
      begin(async_wait(of->itself, w.limit, w.stop), w);
    } else if (!of->itself.wait_for(w.limit, w.stop)) {
      return w.in_vain("wait", of->what());
    }
    return holdfast::done{};
  });
}

int holdfast_latch_remaining(holdfast_latch* latch, uint32_t* count, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(count, "count");
    there = get<latch_handle>(latch, "latch")->itself.remaining();
  });
}

int holdfast_latch_remove(holdfast_latch* latch, holdfast_error* why) {
  return guarded(why, [&] { get<latch_handle>(latch, "latch")->itself.remove(); });
}

int holdfast_barrier_open(holdfast_session* session, const char* name, uint32_t count,
                          int64_t lease_ms, holdfast_barrier** barrier, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(barrier, "barrier");
    holdfast::barrier_options o;
    o.lease = std::chrono::milliseconds(lease_ms);
    give(&there, std::make_shared<barrier_handle>(session_visit(session).itself(),
                                                  text_of(name, "name"), count, std::move(o)));
  });
}

int holdfast_barrier_arrive(holdfast_barrier* barrier, holdfast_arrival** arrival,
                            holdfast_error* why) {
  return holdfast_barrier_arrive_within(barrier, nullptr, arrival, why);
}

int holdfast_barrier_arrive_within(holdfast_barrier* barrier, const holdfast_wait* how,
                                   holdfast_arrival** arrival, holdfast_error* why) {
  return guarded(why, [&]() -> holdfast::status {
    auto w = read(how);
    const visit here(w.to ? barrier : nullptr);
    const auto of = get<barrier_handle>(barrier, "barrier");
    of->waits.also_end(w);
    if (!w.to) (void)out(arrival, "arrival");
    auto started = async_arrive(of->itself, w.limit, w.stop);
    if (w.to) {
      begin(std::move(started), w, [of](holdfast::barrier::arrival&& mine, event_of& e) {
        e.granted = std::make_shared<arrival_handle>(of, std::move(mine));
      });
      return holdfast::done{};
    }
    auto mine = std::move(started).future().get();
    if (!mine) return std::move(mine.error());
    give(arrival, std::make_shared<arrival_handle>(of, std::move(*mine)));
    return holdfast::done{};
  });
}

int holdfast_barrier_wait(holdfast_barrier* barrier, holdfast_arrival* arrival,
                          const holdfast_wait* how, holdfast_error* why) {
  return guarded(why, [&]() -> holdfast::status {
    const auto w = read(how);
    const visit here(w.to ? barrier : nullptr);
    const auto of = get<barrier_handle>(barrier, "barrier");
    const auto mine = get<arrival_handle>(arrival, "arrival");
    if (mine->at != of)
      refuse(holdfast::errc::invalid_argument, "arrival: it belongs to another barrier");
    if (!w.to) return wait_now(mine, arrival, w);
    begin_barrier_wait(mine, arrival, w);
    return holdfast::done{};
  });
}

int holdfast_barrier_arrive_and_wait(holdfast_barrier* barrier, const holdfast_wait* how,
                                     holdfast_error* why) {
  return begin_or_await(barrier, how, why, holdfast::async_arrive_and_wait);
}

int holdfast_barrier_arrive_and_drop(holdfast_barrier* barrier, holdfast_error* why) {
  return holdfast_barrier_arrive_and_drop_within(barrier, nullptr, why);
}

int holdfast_barrier_arrive_and_drop_within(holdfast_barrier* barrier, const holdfast_wait* how,
                                            holdfast_error* why) {
  return begin_or_await(barrier, how, why, holdfast::async_arrive_and_drop);
}

int holdfast_condition_open(holdfast_session* session, const char* name,
                            holdfast_condition** condition, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(condition, "condition");
    give(&there, std::make_shared<condition_handle>(session_visit(session).itself(),
                                                    text_of(name, "name")));
  });
}

int holdfast_condition_wait(holdfast_condition* condition, holdfast_lease* lease,
                            const holdfast_wait* how, uint32_t* notified, holdfast_error* why) {
  return guarded(why, [&] {
    const auto w = read(how);
    const visit here(w.to ? condition : nullptr);
    const auto of = get<condition_handle>(condition, "condition");
    if (w.to) {
      begin_condition_wait(of, condition_wait(lease), w);
    } else {
      auto& there = out(notified, "notified");
      there = wait_now(of->itself, condition_wait(lease), w);
    }
  });
}

int holdfast_condition_notify_one(holdfast_condition* condition, uint32_t* woken,
                                  holdfast_error* why) {
  return guarded(why, [&] {
    const auto count = get<condition_handle>(condition, "condition")->itself.notify_one();
    if (woken != nullptr) *woken = count;
  });
}

int holdfast_condition_notify_all(holdfast_condition* condition, uint32_t* woken,
                                  holdfast_error* why) {
  return guarded(why, [&] {
    const auto count = get<condition_handle>(condition, "condition")->itself.notify_all();
    if (woken != nullptr) *woken = count;
  });
}

}  // extern "C"
