#include "diagnose/trace.hpp"

#include <utility>

#include "diagnose/lock_order.hpp"
#include "lease/own_holds.hpp"

namespace holdfast::engine {

namespace {
thread_local trace* current = nullptr;
}

trace::trace(const std::shared_ptr<session_impl>& session, wait_time wait, std::stop_token stop)
    : session_(session), wait_(wait), stop_(std::move(stop)) {}

trace::trace(const std::shared_ptr<session_impl>& session, const lock_config& s,
             const acquire_params& c, wait_time wait, std::stop_token stop)
    : trace(session, wait, std::move(stop)) {
  if (current != nullptr || wait == one_try) return;  // a try does not wait
  outermost_ = true;
  current = this;
  if (session->options().lock_order) note_lock_order(*session, s.name);
  if (session->deadlock_watch() != nullptr) watch(s, c);
}

trace::~trace() {
  if (who_) session_->deadlock_watch()->end(who_);
  if (outermost_) current = nullptr;
}

// A thread that holds nothing is in no waiter's way, and a hold that ends by itself is so for a
// limited time only.
void trace::watch(const lock_config& s, const acquire_params& c) {
  auto who = std::make_shared<blocked>();
  each_own_hold([&](const own_hold& own) {
    const bool counts = own.in_std_style && !own.ends_by_itself && own.url == session_->url();
    if (counts) who->holds.push_back({own.owner, own.name, [own] { return own.is_over(); }});
  });
  if (who->holds.empty() || !session_->deadlock_watch()->start()) return;
  who->id = session_->new_owner();
  who->name = s.name;
  who->weight = c.weight;
  who->limited = wait_ != no_limit;
  if (stop_.stop_possible()) {
    callers_ = std::make_unique<std::stop_callback<pass_on>>(stop_, pass_on{who->stop});
  }
  stop_ = who->stop.get_token();
  who_ = std::move(who);
  session_->deadlock_watch()->begin(who_);
}

namespace {
void note(const lease& l, bool in_std_style) {
  const auto& h = hold::shared_behind(l);
  note_own(h, {h->session()->url(), h->name(), h->owner(), in_std_style, h->ends_by_itself(),
               current_call_site()});
}
}  // namespace

void trace::got(const lease& l) { note(l, false); }
void trace::got_in_std_style(const lease& l) { note(l, true); }

failure trace::judged(failure f) {
  const trace* const t = current;
  if (t == nullptr || !t->who_ || f.code != errc::cancelled) return f;
  auto story = t->session_->deadlock_watch()->story_of(*t->who_);
  if (story.empty()) return f;
  return {t->wait_ == no_limit ? errc::deadlock : errc::timed_out, std::move(story)};
}

}  // namespace holdfast::engine
