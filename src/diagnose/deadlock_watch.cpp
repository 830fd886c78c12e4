#include "diagnose/deadlock_watch.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/words.hpp"
#include "session/store_client.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;
using store::permits_verb;

namespace {

/// A mark that is not confirmed expires after this time.
constexpr std::chrono::microseconds mark_lasts = 2s;
/// How often a wait must be confirmed while the ring is seen.
constexpr unsigned enough = 3;
/// A walk that found this many waits gives up: far more than any ring of a real program.
constexpr std::size_t max_met = 512;

constexpr std::string_view mark_word = "~waits~";
constexpr std::size_t mark_digits = 16;
constexpr std::string_view says = "waits ", says_limited = "tries ";

store::permits_command mark_command(permits_verb verb, const store::owner_id& wait) {
  return {.verb = verb,
          .owner = wait,
          .kind = store::kind::semaphore,  // readers that share a hold may all wait
          .capacity = 1U << 20,
          .lease_us = mark_lasts.count()};
}

/// "host pid program waits WEIGHT AGE NAME", or "tries" if the wait has a time limit: a program
/// that does not know this word sees no ring, and ends no wait.
struct mark_text {
  std::string_view who{};
  bool limited = false;
  std::uint32_t weight = 0;
  std::uint64_t age = 0;  ///< of an earlier mark of this wait, which expired; else 0
  std::string_view name{};
};

std::optional<mark_text> read_mark(std::string_view note) {
  mark_text text{.name = note};
  for (int words = 0; words < 3; ++words) (void)base::take_word(text.name);
  text.who = note.substr(0, note.size() - text.name.size() - 1);
  text.limited = text.name.starts_with(says_limited);
  if (!text.limited && !text.name.starts_with(says)) return std::nullopt;
  (void)base::take_word(text.name);
  if (!base::take_number(text.name, text.weight) || !base::take_number(text.name, text.age) ||
      text.name.empty()) {
    return std::nullopt;
  }
  return text;
}

bool same_ring(const std::vector<deadlock_watch::link>& a,
               const std::vector<deadlock_watch::link>& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.wait == y.wait && x.hold == y.hold;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

/// Whether `b` is to end rather than `a`, if they are part of one ring.
bool ends_later(const deadlock_watch::link& a, const deadlock_watch::link& b) {
  return std::tie(a.limited, a.age, a.wait) < std::tie(b.limited, b.age, b.wait);
}

/// A step of a walk: a name that is waited for, and the waits that led to it.
struct step {
  std::string name;
  std::uint32_t weight = 1;
  std::vector<deadlock_watch::link> path{};
};

/// A holder in the way: its hold of that name.
struct obstacle {
  store::owner_id hold{};
  std::string name;
  const step* from = nullptr;
};

// A store may list its holders in an order that changes with each renewal. A walk that found
// another ring in each round would confirm none of them.
std::vector<store::holder> in_fixed_order(const store::permits_record& found) {
  auto all = found.holders;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.owner < b.owner; });
  return all;
}

// Reads many names, in one round trip if the store can.
std::vector<result<store::permits_reply>> look_at(store_client& session,
                                                  const std::vector<std::string>& names) {
  std::vector<store::named_command> looks;
  if (names.empty()) return {};
  looks.reserve(names.size());
  for (const auto& name : names) looks.push_back({name, {}});
  return session.permits(looks);
}

// Returns the holders that have to release: those beside whom the waiter does not fit, whatever
// other holders do.
std::vector<obstacle> in_the_way(store_client& session, const std::vector<step>& steps) {
  std::vector<std::string> names;
  names.reserve(steps.size());
  for (const step& s : steps) names.push_back(s.name);
  const auto replies = look_at(session, names);
  std::vector<obstacle> all;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!replies[i]) continue;
    const auto& found = replies[i]->found;
    for (const auto& h : in_fixed_order(found)) {
      if (std::uint64_t{h.weight} + steps[i].weight <= found.capacity) continue;
      all.push_back({h.owner, steps[i].name, &steps[i]});
    }
  }
  return all;
}

}  // namespace

std::optional<std::string> wait_mark(std::string_view name, const store::owner_id& hold,
                                     std::size_t max_bytes) {
  std::string mark(name);
  mark += mark_word;
  // Half of the id is too little to release the hold.
  mark += to_string(hold).substr(0, mark_digits);
  if (mark.size() > max_bytes) return std::nullopt;
  return mark;
}

bool is_wait_mark(std::string_view name) noexcept {
  constexpr auto length = mark_word.size() + mark_digits;
  if (name.size() <= length) return false;
  name.remove_prefix(name.size() - length);
  return name.starts_with(mark_word) &&
         name.find_first_not_of("0123456789abcdef", mark_word.size()) == name.npos;
}

deadlock_watch::deadlock_watch(store_client& session) : session_(session) {}

deadlock_watch::~deadlock_watch() {
  {
    const std::lock_guard guard{mutex_};
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
  withdraw(gone_);
}

std::string deadlock_watch::story_of(const blocked& who) {
  const std::lock_guard guard{mutex_};
  return who.story;
}

// Warns if there is no thread: otherwise nobody would know that deadlocks are not detected.
status deadlock_watch::start() noexcept {
  auto started = thread_.start("to look for deadlocks", [this] { run(); });
  if (started || warned_of_no_thread_.exchange(true)) return started;
  const auto& why = started.error();
  session_.tell({.kind = event_kind::warning, .code = why.code, .detail = why.what});
  return started;
}

void deadlock_watch::begin(std::shared_ptr<blocked> who) {
  const std::lock_guard guard{mutex_};
  waiting_.push_back(std::move(who));
  changed_.notify_all();
}

void deadlock_watch::end(const std::shared_ptr<blocked>& who) noexcept try {
  const std::lock_guard guard{mutex_};
  std::erase(waiting_, who);
  gone_.push_back(who);
} catch (...) {
  return;  // no memory to remove its marks: they expire
}

bool deadlock_watch::idle() const { return waiting_.empty() && gone_.empty(); }

// A wait that ends before the next round costs the store nothing.
void deadlock_watch::run() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    const boot_time until = idle() ? forever : session_.now() + period;
    while (!stopping_ && session_.now() < until && (until != forever || idle())) {
      session_.clock().wait_until(lock, changed_, until);
    }
    if (stopping_ || until == forever) continue;
    lock.unlock();
    try {
      round();
    } catch (...) {
      // No memory: the next round tries again.
    }
    lock.lock();
  }
}

void deadlock_watch::round() {
  std::vector<std::shared_ptr<blocked>> gone, waiting;
  {
    const std::lock_guard guard{mutex_};
    gone.swap(gone_);
    waiting = waiting_;
  }
  withdraw(gone);
  std::erase_if(watched_, [&](const watched& w) {
    return std::find(waiting.begin(), waiting.end(), w.who) == waiting.end();
  });
  for (const auto& who : waiting) {
    if (!marked(who)) watched_.push_back({who});
  }
  for (watched& w : watched_) {
    confirm(w);
    if (auto ring = walk(w)) {
      judge(w, std::move(*ring));
    } else {
      w.ring.clear();
    }
  }
}

bool deadlock_watch::marked(const std::shared_ptr<blocked>& who) const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [&](const watched& w) { return w.who == who; });
}

// If the release fails, or there is no memory for it, the marks expire: they are not confirmed any
// more.
void deadlock_watch::withdraw(const std::vector<std::shared_ptr<blocked>>& gone) noexcept try {
  std::vector<std::string> marks;
  std::vector<store::named_command> releases;
  for (const auto& who : gone) {
    if (!marked(who)) continue;
    for (const auto& h : who->holds) {
      if (auto mark = wait_mark(h.name, h.owner, session_.can().max_name_bytes)) {
        marks.push_back(std::move(*mark));
        releases.push_back({{}, mark_command(permits_verb::release, who->id)});
      }
    }
  }
  if (marks.empty()) return;
  for (std::size_t i = 0; i < marks.size(); ++i) releases[i].name = marks[i];
  (void)session_.permits(releases);
} catch (...) {
  return;
}

// All marks of a wait have to tell the same age, or two waits of a ring could each take the other
// one for the later. The first mark's fence is the age, so the others follow when it is known.
void deadlock_watch::confirm(watched& w) {
  std::vector<std::string> marks;
  std::vector<store::owner_id> holds;
  for (const auto& h : w.who->holds) {
    auto mark = wait_mark(h.name, h.owner, session_.can().max_name_bytes);
    if (!mark) continue;
    if (h.is_over && h.is_over()) {
      w.marked.erase(h.owner);
      continue;
    }
    marks.push_back(std::move(*mark));
    holds.push_back(h.owner);
  }
  if (marks.empty() || !still_waits(w)) return;
  const std::size_t first = w.age == 0 ? 1 : 0;
  if (first > 0) put_up(w, std::span(marks).first(first), std::span(holds).first(first));
  if (w.age != 0) put_up(w, std::span(marks).subspan(first), std::span(holds).subspan(first));
}

// An acquire of a mark that exists renews it. A mark that expired keeps the age of its wait.
void deadlock_watch::put_up(watched& w, std::span<const std::string> marks,
                            std::span<const store::owner_id> holds) {
  if (marks.empty()) return;
  const auto note = session_.note(std::string(w.who->limited ? says_limited : says) +
                                  std::to_string(w.who->weight) + ' ' + std::to_string(w.age) +
                                  ' ' + w.who->name);
  std::vector<store::named_command> acquires;
  for (const auto& mark : marks) {
    acquires.push_back({mark, mark_command(permits_verb::acquire, w.who->id)});
    acquires.back().command.peer = session_.peer();
    acquires.back().command.note = note;
  }
  const auto replies = session_.permits(acquires);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i]) {
      warn(replies[i].error());
    } else if (replies[i]->outcome == permits_outcome::granted) {
      w.marked.insert(holds[i]);
      if (w.age == 0) w.age = replies[i]->fence;
    }
  }
}

// Does not warn of a store that is away, which other code reports.
void deadlock_watch::warn(const failure& why) {
  if (is_retryable(why.code) || std::exchange(warned_, true)) return;
  const auto detail = "detect_deadlocks cannot write its marks (NAME~waits~…): " + why.what;
  session_.tell({.kind = event_kind::warning, .code = why.code, .detail = detail});
}

bool deadlock_watch::still_waits(const watched& w) {
  const std::lock_guard guard{mutex_};
  return w.who->story.empty() &&
         std::find(waiting_.begin(), waiting_.end(), w.who) != waiting_.end();
}

// Follows only waits that would not end before this one. The wait that is to end a ring is the last
// of them in the order of ends_later(), so its walk reaches all others, and each ring that it finds
// is one that it has to end.
std::optional<std::vector<deadlock_watch::link>> deadlock_watch::walk(const watched& w) {
  if (w.marked.empty()) return std::nullopt;
  link last;
  last.wait = w.who->id;
  last.limited = w.who->limited;
  last.age = w.age;
  std::set<store::owner_id> met{w.who->id};
  std::vector<step> steps{{w.who->name, w.who->weight}};
  while (!steps.empty() && met.size() < max_met) {
    const auto obstacles = in_the_way(session_, steps);
    for (const obstacle& o : obstacles) {
      if (!w.marked.contains(o.hold)) continue;
      auto ring = o.from->path;
      ring.push_back(
          {w.who->id, o.hold, w.who->limited, w.age, 0, session_.note({}), o.name, w.who->name});
      return ring;
    }
    std::vector<std::string> marks;
    for (const obstacle& o : obstacles) {
      auto mark = wait_mark(o.name, o.hold, session_.can().max_name_bytes);
      marks.push_back(std::move(mark).value_or(o.name));
    }
    const auto replies = look_at(session_, marks);
    std::vector<step> next;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (!replies[i] || !is_wait_mark(marks[i])) continue;
      for (const auto& h : in_fixed_order(replies[i]->found)) {
        const auto text = read_mark(h.note);
        if (!text || !met.insert(h.owner).second) continue;
        step s{std::string(text->name), text->weight, obstacles[i].from->path};
        const auto age = text->age == 0 ? h.fence : text->age;
        s.path.push_back({h.owner, obstacles[i].hold, text->limited, age, h.expires_at,
                          std::string(text->who), obstacles[i].name, s.name});
        if (!ends_later(s.path.back(), last)) continue;
        next.push_back(std::move(s));
      }
    }
    steps = std::move(next);
  }
  return std::nullopt;
}

void deadlock_watch::judge(watched& w, std::vector<link> ring) {
  if (!same_ring(ring, w.ring)) {
    w.confirmations.assign(ring.size(), 0);
    w.confirmations.back() = enough;  // our own: still_waits()
  } else {
    for (std::size_t i = 0; i + 1 < ring.size(); ++i) {
      if (ring[i].confirmed > w.ring[i].confirmed) ++w.confirmations[i];
    }
  }
  w.ring = std::move(ring);
  const auto least = std::min_element(w.confirmations.begin(), w.confirmations.end());
  const auto ends = std::max_element(w.ring.begin(), w.ring.end(), ends_later);
  if (*least >= enough && ends->wait == w.who->id) choose(w);
}

void deadlock_watch::choose(watched& w) {
  const bool limited =
      std::any_of(w.ring.begin(), w.ring.end(), [](const link& l) { return l.limited; });
  std::string story =
      limited ? "only a time limit would have ended it:" : "it would never have ended:";
  for (const link& l : w.ring) {
    story += " " + l.who + " has \"" + l.has + "\" and waits for \"" + l.wants + "\";";
  }
  story +=
      " release the locks that you hold, and take all in one order, or together with multi_lock";
  const std::vector<std::shared_ptr<blocked>> ended{w.who};
  {
    const std::lock_guard guard{mutex_};
    const auto waits = [&](const std::shared_ptr<blocked>& who) {
      return std::find(waiting_.begin(), waiting_.end(), who) != waiting_.end();
    };
    // A mark exists until the next round, but for waits of this session it is known whether they
    // have ended.
    const auto is_broken_by = [&](const watched& v) {
      if (v.who == w.who || (waits(v.who) && v.who->story.empty())) return false;
      return std::any_of(w.ring.begin(), w.ring.end(),
                         [&](const link& l) { return l.wait == v.who->id; });
    };
    if (!waits(w.who) || std::any_of(watched_.begin(), watched_.end(), is_broken_by)) return;
    if (!std::exchange(w.who->story, story).empty()) return;  // reported
  }
  // Otherwise the waits of another ring that goes through this one could be ended as well.
  withdraw(ended);
  w.marked.clear();
  // If its caller has requested a stop before, the wait still ends with the story.
  w.who->stop.request_stop();
  session_.tell(
      {.kind = event_kind::deadlock, .name = w.who->name, .code = errc::deadlock, .detail = story});
}

}  // namespace holdfast::engine
