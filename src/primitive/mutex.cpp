#include <holdfast/fair_mutex.hpp>
#include <holdfast/mutex.hpp>

#include "primitive/common.hpp"
#include "primitive/multi_member.hpp"

namespace holdfast {

using primitive::subject;
using primitive::thread_holds;

struct mutex::state {
  subject of;
  thread_holds holds;
};

mutex::mutex(session s, std::string name, lock_options options)
    : mutex(std::move(s), std::move(name), std::move(options), false) {}

mutex::mutex(session s, std::string name, lock_options options, bool fair)
    : state_(
          new state{subject(s, fair ? "fair_mutex" : "mutex", name, options, store::kind::mutex, 1,
                            fair ? &store::capabilities::fair : &store::capabilities::mutex, !fair),
                    {}}) {}

mutex::~mutex() = default;

fair_mutex::fair_mutex(session s, std::string name, lock_options options)
    : mutex(std::move(s), std::move(name), std::move(options), true) {}

void mutex::lock() { (void)lock_within(no_limit, {}); }

bool mutex::try_lock() { return lock_within(one_try, {}); }

bool mutex::lock_within(wait_time wait, std::stop_token stop) {
  return primitive::lock_for_thread(
      state_->holds, state_->of, wait,
      "this thread holds the lock already; a recursive_mutex may be locked again",
      [&] { return state_->of.acquire({}, wait, std::move(stop)); });
}

void mutex::unlock() noexcept {
  const auto held = state_->holds.take();  // the destructor releases the lock
  if (!held) state_->of.report_misuse("unlock() by a thread that does not hold it");
}

lease mutex::acquire(std::stop_token stop) {
  return state_->of.take({}, no_limit, std::move(stop));
}

std::optional<lease> mutex::acquire_within(wait_time wait, std::stop_token stop) {
  return state_->of.acquire({}, wait, std::move(stop));
}

pending<lease> async_acquire(mutex& lock, wait_limit limit, std::stop_token stop) {
  return engine::async_acquire(detail::access::of(lock)->of.request(limit, std::move(stop)));
}

multi_member::multi_member(mutex& m) {
  const auto& of = detail::access::of(m)->of;
  state_.reset(new state{{of.session, of.config, {}}});
}

std::uint64_t mutex::fence() const noexcept { return state_->holds.fence(); }
void mutex::check() const { state_->holds.check(state_->of); }
std::stop_token mutex::lost() const { return state_->holds.lost(); }
const std::string& mutex::name() const noexcept { return state_->of.config->name; }
clock& clock_of(const mutex& m) noexcept { return m.state_->of.session->clock(); }

}  // namespace holdfast
