#include "tool/survey/scanner.hpp"

#include <algorithm>
#include <utility>

#include "tool/listed_name.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

/// After it the viewers are notified.
constexpr milliseconds longest_burst{200};
constexpr milliseconds between_ticks{1000};
constexpr milliseconds before_next_try{1000};

}  // namespace

scanner::scanner(board& onto, std::function<session()> open, std::function<void()> tick, plan how)
    : board_(onto),
      open_(std::move(open)),
      tick_(std::move(tick)),
      plan_(how),
      pace_(how.share, boot_clock::now()),
      viewed_until_(boot_clock::now() + how.lingers),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

scanner::~scanner() {
  thread_.request_stop();
  thread_.join();
  for (const job& j : jobs_) j.work(nullptr);
}

/// With the mutex held.
void scanner::wake_up() {
  const boot_time now = boot_clock::now();
  if (viewed_until_ < now) catching_up_ = slept_ = true;
  viewed_until_ = now + plan_.lingers;
  woken_.notify_all();
}

void scanner::viewed() {
  const std::lock_guard guard{mutex_};
  wake_up();
}

void scanner::when_fresh(std::function<void(bool)> then, std::function<bool()> wanted) {
  bool fresh = false;
  {
    const std::lock_guard guard{mutex_};
    wake_up();
    fresh = !catching_up_;
    if (!fresh) {
      if (fresh_waiters_.size() >= max_pending)
        std::erase_if(fresh_waiters_, [](const fresh_waiter& w) { return !w.wanted(); });
      if (fresh_waiters_.size() < max_pending)
        return fresh_waiters_.push_back({std::move(then), std::move(wanted)});
    }
  }
  then(fresh);
}

void scanner::perform(std::string lock, std::function<void(const session*)> work) {
  {
    const std::lock_guard guard{mutex_};
    if (jobs_.size() < max_pending) {
      jobs_.push_back({std::move(lock), std::move(work)});
      return woken_.notify_all();
    }
  }
  work(nullptr);
}

void scanner::run(const std::stop_token& stop) {
  boot_time next{};
  own_.emplace();
  pace_.set_share(std::max(plan_.share, plan_.first_share));
  while (!stop.stop_requested()) {
    sleep_unless_viewed(stop);
    do_jobs();
    if (boot_clock::now() >= next) {
      const boot_time began = boot_clock::now();
      next = began + (work_once() ? plan_.interval : std::chrono::nanoseconds{0});
      // The list is due even while the queries are owed.
      const boot_time rested = pace_.rested_at();
      next = std::max(
          {next, try_again_, health_.reachable ? std::min(rested, pace_.list_at()) : rested});
    }
    report();
    rest(stop, std::min(next, boot_clock::now() + between_ticks));
  }
}

void scanner::sleep_unless_viewed(const std::stop_token& stop) {
  {
    std::unique_lock lock{mutex_};
    woken_.wait(lock, stop, [&] {
      return viewed_until_ >= boot_clock::now() || !jobs_.empty() || !fresh_waiters_.empty();
    });
    if (!std::exchange(slept_, false)) return;
  }
  catch_up();
}

void scanner::rest(const std::stop_token& stop, boot_time until) {
  std::unique_lock lock{mutex_};
  const auto left = until - boot_clock::now();
  if (left > left.zero()) woken_.wait_for(lock, stop, left, [&] { return !jobs_.empty(); });
}

void scanner::catch_up() {
  next_name_ = 0;
  pace_.list_now();
  round_began_ = boot_clock::now();
  time_asked_ = {};
  pace_.set_share(std::max(plan_.share, plan_.first_share));
}

void scanner::tell_fresh() {
  std::vector<fresh_waiter> waiters;
  {
    const std::lock_guard guard{mutex_};
    waiters.swap(fresh_waiters_);
    if (health_.reachable) catching_up_ = false;
  }
  for (const auto& w : waiters) w.then(true);
}

void scanner::do_jobs() {
  std::vector<job> jobs;
  {
    const std::lock_guard guard{mutex_};
    jobs.swap(jobs_);
  }
  if (!jobs.empty() && !session_ && boot_clock::now() >= try_again_) connect();
  for (const job& j : jobs) {
    j.work(session_ ? &*session_ : nullptr);
    if (session_) look(j.lock);
  }
}

/// True if every name has been queried now.
bool scanner::work_once() {
  if (!session_) connect();
  if (!session_) return false;
  if (boot_clock::now() >= pace_.list_at() || !health_.reachable) list_names();
  return health_.reachable && look_at_some();
}

void scanner::connect() {
  try {
    session_.emplace(open_());
  } catch (const std::exception& e) {  // also a configuration that has become wrong
    away(e.what());
  }
}

/// Runs a query of any kind, and counts its time. False if the store did not answer. While this
/// thread waits for a processor, the store has answered, or, where this thread itself is the
/// store, does not work.
bool scanner::ask(const std::function<void(const session&)>& question, counted as) {
  const auto waited = own_->sum();
  const boot_time from = boot_clock::now();
  const auto commands = session_->store_operations();
  bool answered = true;
  try {
    question(*session_);
  } catch (const error& e) {
    away(e.what());
    answered = false;
  }
  const boot_time to = std::max(from, boot_clock::now() - std::max({}, own_->sum() - waited));
  (pace_.*(answered ? as : &pace::spent))(from, to);
  time_asked_ += to - from;
  const auto asked = session_->store_operations() - commands;
  health_.commands += asked;
  if (!answered) return false;
  health_.round_trip = (to - from) / static_cast<std::int64_t>(std::max<std::uint64_t>(asked, 1));
  health_.answered_at = system_clock::now();
  if (!std::exchange(health_.reachable, true)) health_.changed_at = health_.answered_at;
  return true;
}

void scanner::away(std::string_view why) {
  ++health_.errors;
  health_.error = unsigned_message(std::string(why));
  if (std::exchange(health_.reachable, false) || health_.errors == 1)
    health_.changed_at = system_clock::now();
  try_again_ = boot_clock::now() + before_next_try;
  report();
  tell_fresh();
}

/// Where the store cannot list them: those names in use that are known. Then a query shows whether
/// the store answers.
std::vector<std::string> scanner::names_in_use(const session& s) {
  try {
    auto found = tool::names_in_use(s, plan_.pattern);
    health_.note.clear();
    return found;
  } catch (const error& e) {
    if (e.reason() != errc::unsupported) throw;
    health_.note = unsigned_message(e.what());
  }
  (void)s.show(of_nobody);
  std::vector<std::string> known;
  for (const auto& name : names_) {
    const auto seen = board_.find(name, system_clock::now());
    if (seen && !seen->what.info.kind.empty()) known.push_back(name);
  }
  return known;
}

void scanner::list_names() {
  std::vector<std::string> found;
  const boot_time from = boot_clock::now();
  const auto listed_at = system_clock::now();
  const auto list = [&](const session& s) { found = names_in_use(s); };
  if (!ask(list, &pace::spent_on_list)) return;
  std::sort(found.begin(), found.end());
  const auto now = system_clock::now();
  for (const auto& name : names_) {
    if (std::binary_search(found.begin(), found.end(), name)) continue;
    listed_name gone;
    gone.info.name = name;
    board_.put(std::move(gone), now);
  }
  forget_ended(found);
  for (const auto& name : found)
    if (!std::binary_search(names_.begin(), names_.end(), name))
      fresh_.push_back({name, listed_at_});
  listed_at_ = listed_at;
  tell_listed();
  if (!listed_) round_began_ = from, owed_ = fresh_.size();
  names_ = std::move(found);
  // At first all of them are new.
  next_name_ = std::exchange(listed_, true) ? std::min(next_name_, names_.size()) : names_.size();
}

/// New names that have ended before they were queried.
void scanner::forget_ended(const std::vector<std::string>& listed) {
  std::deque<fresh_name> left;
  std::size_t owed = 0;
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    if (!std::binary_search(listed.begin(), listed.end(), fresh_[i].name)) continue;
    if (i < owed_) ++owed;
    left.push_back(std::move(fresh_[i]));
  }
  fresh_ = std::move(left);
  owed_ = owed;
}

/// A name that a viewer asked for, and that the store did not list: it is known from now on, so
/// that the next list can show that it went. False if the store has no answer about it.
bool scanner::keep_listed(const listed_name& found, const std::string& name) {
  if (found.error.empty() && found.info.kind.empty()) return true;
  const auto place = std::lower_bound(names_.begin(), names_.end(), name);
  if (place != names_.end() && *place == name) return true;
  if (!found.error.empty()) return false;
  if (static_cast<std::size_t>(place - names_.begin()) < next_name_) ++next_name_;
  names_.insert(place, name);
  return true;
}

bool scanner::look(const std::string& name) {
  listed_name found;
  if (!ask([&](const session& s) { found = look_at(s, name, is_wanted(name)); })) return false;
  if (!keep_listed(found, name)) return true;
  const auto at = std::lower_bound(queued_.begin(), queued_.end(), name);
  const bool noted = at != queued_.end() && *at == name;
  if (found.info.waiters.empty() && noted) queued_.erase(at);
  if (!found.info.waiters.empty() && !noted) queued_.insert(at, name);
  board_.put(std::move(found), system_clock::now());
  return true;
}

void scanner::round_is_done() {
  const boot_time now = boot_clock::now();
  health_.round = now - std::exchange(round_began_, now);
  health_.round_asked = std::exchange(time_asked_, {});
  next_name_ = 0;
  pace_.set_share(plan_.share);
  board_.settle();
  report();
  tell_fresh();
}

bool scanner::is_wanted(const std::string& name) const {
  return std::binary_search(wanted_.begin(), wanted_.end(), name);
}

std::optional<std::string> scanner::next_wanted() {
  next_wanted_ = (next_wanted_ + 1) % wanted_.size();
  return wanted_[next_wanted_];
}

/// Names with waiters change more often, so every second query is for them. A round covers wanted
/// names, too, whatever turns they have beside it.
std::optional<std::string> scanner::next_in_turn() {
  queued_turn_ = !queued_turn_;
  if (queued_turn_ && !queued_.empty()) {
    next_queued_ = (next_queued_ + 1) % queued_.size();
    if (!is_wanted(queued_[next_queued_])) return queued_[next_queued_];
  }
  if (next_name_ == names_.size()) return std::nullopt;
  return names_[next_name_++];
}

/// True if the round is done.
bool scanner::look_at_some() {
  const boot_time until = boot_clock::now() + longest_burst;
  const auto may_ask = [&](boot_time now) { return now < until && pace_.may_ask(now); };
  wanted_ = board_.wanted(boot_clock::now());
  std::size_t wanted_turns = wanted_.size();
  // Each name once at most: a short list is not queried again and again. Names that have come since
  // the round began take every second turn: if they come faster than that, they do not keep out the
  // rest.
  std::size_t turns = names_.size() + queued_.size();
  while (may_ask(boot_clock::now())) {
    std::optional<std::string> name;
    bool wanted = wanted_turns > 0 && lead_ <= lead_.zero();
    const bool others_done = turns == 0 || next_name_ == names_.size();
    if (wanted) {
      name = next_wanted();
    } else if (!fresh_.empty() && (owed_ > 0 || fresh_turn_ || others_done)) {
      name = next_fresh();
    } else if (turns > 0) {
      --turns;
      name = next_in_turn();
    }
    if (!name && wanted_turns > 0) name = next_wanted(), wanted = true;
    if (!name) break;
    if (wanted)
      --wanted_turns;
    else
      fresh_turn_ = !fresh_turn_;
    const auto before = time_asked_;
    if (!look(*name)) return false;
    tell_listed();
    // A scan for the buckets of a limiter counts with its real cost.
    lead_ = wanted ? time_asked_ - before : lead_ - (time_asked_ - before);
  }
  if (owed_ > 0 || next_name_ < names_.size()) return false;
  round_is_done();
  owed_ = fresh_.size();
  return true;
}

/// A listed name is not on the board before it is queried.
void scanner::tell_listed() {
  board_.listed(fresh_.empty() ? listed_at_ : fresh_.front().absent_at);
}

std::string scanner::next_fresh() {
  std::string name = std::move(fresh_.front().name);
  fresh_.pop_front();
  if (owed_ > 0) --owed_;
  return name;
}

void scanner::report() {
  health_.allowed_share = pace_.share();
  health_.used_share = pace_.used(boot_clock::now());
  board_.set_health(health_);
  tick_();
}

}  // namespace holdfast::tool
