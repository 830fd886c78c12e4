#include "c/queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <holdfast/clock.hpp>
#include <optional>
#include <utility>

namespace holdfast::c_abi {

namespace {

int new_eventfd() {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) {
    refuse(errc::overloaded, std::string("a queue needs a file descriptor: ") +
                                 std::generic_category().message(errno));
  }
  return fd;
}

}  // namespace

queue::queue() : fd_(new_eventfd()) {}

queue::~queue() { queue::on_close(); }

void queue::on_close() noexcept {
  std::list<event_of> dropped;  // leases are released without the mutex
  const std::lock_guard guard{mutex_};
  closed_ = true;
  dropped.swap(events_);
  // Closed here, because a watched lease or a pending wait may keep the queue object alive.
  if (const int fd = std::exchange(fd_, -1); fd >= 0) (void)::close(fd);
  came_.notify_all();
}

void queue::push(prepared one) noexcept { add(std::move(one), false); }

void queue::put_back(prepared one) noexcept { add(std::move(one), true); }

void queue::add(prepared one, bool first) noexcept {
  const std::lock_guard guard{mutex_};
  if (closed_) return;
  events_.splice(first ? events_.begin() : events_.end(), one);
  (void)::eventfd_write(fd_, 1);
  came_.notify_one();
}

prepared queue::pop(std::chrono::nanoseconds wait) {
  const auto until = wait > one_try ? saturated_add(boot_clock::now(), wait) : boot_time::min();
  std::unique_lock guard{mutex_};
  while (events_.empty() && !closed_ && boot_clock::now() < until) {
    real_clock().wait_until(guard, came_, until);
  }
  if (closed_) refuse(errc::cancelled, "the queue was closed");
  prepared one;
  if (!events_.empty()) one.splice(one.end(), events_, events_.begin());
  if (events_.empty()) {
    eventfd_t told = 0;
    (void)::eventfd_read(fd_, &told);
  }
  return one;
}

failure waiting::in_vain(const char* operation, about what) const {
  const auto code = stop.stop_requested() ? errc::cancelled
                    : is_try()            ? errc::busy
                                          : errc::timed_out;
  return {code, "", false, operation, std::move(what.name), std::move(what.store)};
}

wait_time time_of(std::int64_t timeout_ns) {
  return timeout_ns < 0 ? no_limit : wait_time(timeout_ns);
}

waiting as_given(const holdfast_wait* how) {
  waiting w;
  if (how == nullptr) return w;
  const auto given = read(how, "how");
  w.limit = time_of(given.timeout_ns);
  if (given.stop != nullptr) w.stop = get<stop_handle>(given.stop, "stop")->itself.get_token();
  if (given.queue != nullptr) w.to = get<queue>(given.queue, "queue");
  w.tag = given.tag;
  return w;
}

waiting read(const holdfast_wait* how) {
  waiting w = as_given(how);
  using in = call_under_way::in;
  w.under_way = std::make_shared<call_under_way>(w.to ? in::a_queue : in::this_thread);
  if (!w.stop.stop_possible()) {
    w.stop = w.under_way->closed();
  } else {
    w.either = std::make_shared<either_stops>(w.stop, w.under_way->closed());
    w.stop = w.either->token();
  }
  return w;
}

namespace {

/// If there is no memory for the lease's handle, the event goes back to the queue, and `there`
/// stays unchanged: a caller that reads it in spite of the error must not find a lease.
void put_event(holdfast_event& there, prepared& one, queue& of) {
  event_of& e = one.front();
  void* lease = e.known;
  try {
    if (e.granted) lease = enter(e.granted);
  } catch (...) {
    of.put_back(std::move(one));
    throw;
  }
  there.kind = e.kind;
  there.tag = e.tag;
  there.code = e.how ? HOLDFAST_OK : static_cast<int>(e.how.error().code);
  there.number = e.number;
  there.wait_us = e.wait_us;
  there.lease = static_cast<holdfast_lease*>(lease);
}

/// Reads the next event. `also` receives the rest of the event, and must not throw.
template <class Also>
int next_event(holdfast_queue* from, std::int64_t timeout_ns, holdfast_event* event,
               holdfast_error* why, Also also) {
  prepared one;
  const int code = guarded(why, [&]() -> status {
    out_struct there(event, "event");
    const auto of = get<queue>(from, "queue");
    one = of->pop(time_of(timeout_ns));
    if (one.empty()) return failure{errc::timed_out, "no event yet"};
    put_event(*there, one, *of);
    also(one.front());
    return done{};
  });
  if (code != HOLDFAST_OK) return code;
  // This call has succeeded; `why` describes the end of another call.
  (void)guarded(why, [&] { return std::move(one.front().how); });
  return HOLDFAST_OK;
}

}  // namespace

}  // namespace holdfast::c_abi

using namespace holdfast::c_abi;

extern "C" {

int holdfast_stop_open(holdfast_stop** stop, holdfast_error* why) {
  return guarded(why, [&] { give(&out(stop, "stop"), std::make_shared<stop_handle>()); });
}

int holdfast_stop_request(holdfast_stop* stop, holdfast_error* why) {
  return guarded(why, [&] { (void)get<stop_handle>(stop, "stop")->itself.request_stop(); });
}

int holdfast_queue_open(holdfast_queue** to, int* fd, holdfast_error* why) {
  return guarded(why, [&] {
    auto& there = out(to, "queue");
    auto made = std::make_shared<queue>();
    if (fd != nullptr) *fd = made->fd();
    give(&there, std::move(made));
  });
}

int holdfast_queue_next(holdfast_queue* from, int64_t timeout_ns, holdfast_event* event,
                        holdfast_error* why) {
  return next_event(from, timeout_ns, event, why, [](const event_of&) {});
}

int holdfast_queue_next_decision(holdfast_queue* from, int64_t timeout_ns, holdfast_event* event,
                                 holdfast_decision* decision, holdfast_error* why) {
  std::optional<out_struct<holdfast_decision>> there;
  const int wrong = guarded(why, [&] { there.emplace(decision, "decision"); });
  if (wrong != HOLDFAST_OK) return wrong;
  return next_event(from, timeout_ns, event, why, [&](const event_of& e) {
    if (!e.decided) return;
    const uint32_t size = (*there)->size;
    **there = *e.decided;
    (*there)->size = size;
  });
}

}  // extern "C"
