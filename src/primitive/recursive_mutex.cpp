#include <holdfast/recursive_mutex.hpp>
#include <limits>
#include <unordered_map>

#include "primitive/common.hpp"

namespace holdfast {

using primitive::subject;
using primitive::thread_holds;

struct recursive_mutex::state {
  subject of;
  thread_holds holds;
  mutable std::mutex mutex;
  std::unordered_map<primitive::thread_number, std::uint32_t> levels;

  std::uint32_t level() const {
    if (of.session->forked()) return 0;  // the mutex may be the parent's
    const std::lock_guard guard{mutex};
    const auto mine = levels.find(primitive::this_thread_number());
    return mine == levels.end() ? 0 : mine->second;
  }
  void set(std::uint32_t level) {
    const std::lock_guard guard{mutex};
    if (level == 0) {
      levels.erase(primitive::this_thread_number());
    } else {
      levels[primitive::this_thread_number()] = level;
    }
  }
};

recursive_mutex::recursive_mutex(session s, std::string name, lock_options options)
    : state_(new state{subject(s, "recursive_mutex", name, options, store::kind::mutex, 1,
                               &store::capabilities::mutex, true),
                       {},
                       {},
                       {}}) {}

recursive_mutex::~recursive_mutex() = default;

bool recursive_mutex::lock_within(wait_time wait, std::stop_token stop) {
  state_->of.require_usable();
  const std::uint32_t level = state_->level();
  if (level > 0) {
    if (level > std::numeric_limits<std::int32_t>::max()) {
      state_->of.fail({errc::overloaded, "locked too many times by one thread"});
    }
    // Work that goes deeper under a lock that is gone would be work without one.
    state_->holds.check(state_->of);
    if (stop.stop_requested()) return false;
    state_->set(level + 1);
    return true;
  }
  auto got = state_->of.acquire({}, wait, std::move(stop));
  if (!got) return false;
  state_->holds.put(std::move(*got));
  try {
    state_->set(1);
  } catch (...) {
    (void)state_->holds.take();  // a hold without a level could never be given back
    throw;
  }
  return true;
}

void recursive_mutex::unlock() noexcept {
  const std::uint32_t level = state_->level();
  if (level == 0) return state_->of.report_misuse("unlock() by a thread that does not hold it");
  state_->set(level - 1);
  if (level == 1) (void)state_->holds.take();  // its end is the release
}

std::uint32_t recursive_mutex::level() const noexcept { return state_->level(); }
std::uint64_t recursive_mutex::fence() const noexcept { return state_->holds.fence(); }
void recursive_mutex::check() const { state_->holds.check(state_->of); }
std::stop_token recursive_mutex::lost() const { return state_->holds.lost(); }
const std::string& recursive_mutex::name() const noexcept { return state_->of.config->name; }
clock& clock_of(const recursive_mutex& m) noexcept { return m.state_->of.session->clock(); }

}  // namespace holdfast
