#include "tool/serve/shared_answer.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::tool {

using std::chrono::nanoseconds;

/// With the mutex held.
void shared_answer::make() {
  const boot_time began = now_();
  last_version_ = version_();
  last_ = make_();
  made_at_ = now_();
  pause_ = std::max<nanoseconds>(least_pause, 4 * (made_at_ - began));
}

std::optional<nanoseconds> shared_answer::ask(const judge& is_good, receiver then) {
  document found;
  {
    const std::lock_guard guard{mutex_};
    const nanoseconds age = now_() - made_at_;
    const bool serves = last_ && age < std::max<nanoseconds>(pause_, least_use) &&
                        version_() == last_version_ && is_good(*last_);
    if (!serves && last_ && (age < pause_ || !waiting_.empty())) {
      waiting_.push_back(std::move(then));
      if (waiting_.size() > 1) return std::nullopt;
      return pause_ - age;
    }
    if (!serves) make();
    found = *last_;
  }
  then(found);
  return std::nullopt;
}

void shared_answer::tell() {
  std::vector<receiver> all;
  document found;
  {
    const std::lock_guard guard{mutex_};
    all.swap(waiting_);
    make();
    found = *last_;
  }
  for (const receiver& then : all) then(found);
}

}  // namespace holdfast::tool
