#include <holdfast/recursive_mutex.hpp>
#include <limits>

#include "primitive/common.hpp"

namespace holdfast {

using primitive::subject;
using primitive::thread_hold;
using primitive::thread_holds;

struct recursive_mutex::state {
  subject of;
  thread_holds holds;
};

recursive_mutex::recursive_mutex(session s, std::string name, lock_options options)
    : state_(new state{subject(s, "recursive_mutex", name, options, store::kind::mutex, 1,
                               &store::capabilities::mutex, true),
                       {}}) {}

recursive_mutex::~recursive_mutex() = default;

bool recursive_mutex::lock_within(wait_time wait, std::stop_token stop) {
  state_->of.require_usable();
  if (thread_hold* const mine = state_->holds.find()) {
    if (mine->level > std::numeric_limits<std::int32_t>::max()) {
      state_->of.fail({errc::overloaded, "locked too many times by one thread"});
    }
    // If the lock is lost, a deeper level must not begin: it would run without the lock.
    mine->check();
    if (stop.stop_requested()) return false;
    ++mine->level;
    return true;
  }
  auto got = state_->of.acquire({}, wait, std::move(stop));
  if (got) state_->holds.put(std::move(*got));
  return got.has_value();
}

void recursive_mutex::unlock() noexcept {
  thread_hold* const mine = state_->holds.find();
  if (mine == nullptr)
    return state_->of.report_misuse("unlock() by a thread that does not hold it");
  if (--mine->level == 0) (void)state_->holds.take();  // the destructor releases the lock
}

std::uint32_t recursive_mutex::level() const noexcept {
  if (state_->of.session->forked()) return 0;
  const thread_hold* const mine = state_->holds.find();
  return mine == nullptr ? 0 : mine->level;
}
std::uint64_t recursive_mutex::fence() const noexcept { return state_->holds.fence(); }
void recursive_mutex::check() const { state_->holds.check(state_->of); }
std::stop_token recursive_mutex::lost() const { return state_->holds.lost(); }
const std::string& recursive_mutex::name() const noexcept { return state_->of.config->name; }
clock& clock_of(const recursive_mutex& m) noexcept { return m.state_->of.session->clock(); }

}  // namespace holdfast
