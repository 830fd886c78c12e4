#include "tool/loss_story.hpp"

#include "tool/duration.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

void loss_story::on_event(const event& e) {
  const std::lock_guard guard{mutex_};
  switch (e.kind) {
    case event_kind::acquired:
    case event_kind::renewed:
    case event_kind::held_again:
      in_trouble_ = false;
      last_failure_.clear();
      renewed_at_ = boot_clock::now();
      renewed_on_ = std::chrono::system_clock::now();
      return;
    case event_kind::renew_failed:
      last_failure_ = printable(e.detail.empty() ? e.code.message() : std::string(e.detail));
      in_trouble_ = true;
      return;
    case event_kind::suspect:
      in_trouble_ = true;
      return;
    case event_kind::lost:
      detail_ = printable(e.detail);
      lost_ = true;
      told_.notify_all();
      return;
    default:
      return;
  }
}

void loss_story::wait_for_loss(std::chrono::milliseconds patience) {
  std::unique_lock lock{mutex_};
  told_.wait_for(lock, patience, [this] { return lost_; });
}

std::string loss_story::why(std::chrono::nanoseconds paused) const {
  const std::lock_guard guard{mutex_};
  if (paused > paused.zero()) {
    const std::string pause = "this process was paused for " + format_duration(paused);
    // A short pause, beside a store that was away.
    if (!last_failure_.empty() && !detail_.empty())
      return detail_ + ": " + trouble() + "; and " + pause;
    return detail_.empty() ? pause + ", too long to renew the lease" : detail_ + ": " + pause;
  }
  if (!in_trouble_) return detail_.empty() ? "the lease was not renewed in time" : detail_;
  const std::string what = detail_.empty() ? "the lease was about to end" : detail_;
  return what + ": " + trouble();
}

std::string loss_story::trouble() const {
  std::string text = "no renewal succeeded since " + rfc3339(renewed_on_) + " (" +
                     format_duration(boot_clock::now() - renewed_at_) + ')';
  return text + (last_failure_.empty() ? ", and none was answered"
                                       : ", the last one failed: " + last_failure_);
}

}  // namespace holdfast::tool
