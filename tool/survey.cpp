#include "tool/survey.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <string_view>
#include <utility>

#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Questions are asked for so long in one go.
constexpr nanoseconds asking_slice = 5ms;
constexpr nanoseconds pause_in_trouble = 1s;

}  // namespace

nanoseconds rest_after(nanoseconds asked) noexcept { return asked * (rest_for_work - 1); }

survey::survey(session s, std::string pattern, nanoseconds interval, const bell& changed)
    : session_(std::move(s)),
      pattern_(std::move(pattern)),
      interval_(interval),
      changed_(changed),
      thread_([this] { run(); }) {}

survey::~survey() {
  {
    const std::lock_guard guard{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

survey_state survey::state() const {
  const std::lock_guard guard{mutex_};
  survey_state copy = state_;
  for (const auto& [name, found] : found_) copy.names.push_back(found);
  return copy;
}

void survey::order(std::function<std::string(const session&)> what) {
  const std::lock_guard guard{mutex_};
  orders_.push_back(std::move(what));
  wake_.notify_all();
}

bool survey::stopping() const {
  const std::lock_guard guard{mutex_};
  return stopping_;
}

void survey::tell(const std::function<void(survey_state&)>& change) {
  {
    const std::lock_guard guard{mutex_};
    change(state_);
  }
  changed_.ring();
}

void survey::run() {
  while (!stopping()) {
    const auto began = steady_clock::now();
    try {
      round();
      rest(interval_ - (steady_clock::now() - began));
    } catch (const std::exception& e) {
      tell([&](survey_state& s) { s.trouble = unsigned_message(e.what()); });
      rest(std::max(interval_, pause_in_trouble));
    }
  }
}

void survey::round() {
  const auto began = steady_clock::now();
  const auto names = session_.names(pattern_);
  const nanoseconds asked = steady_clock::now() - began;
  bool first = true;
  {
    const std::lock_guard guard{mutex_};
    const std::set<std::string_view> present(names.begin(), names.end());
    std::erase_if(found_, [&](const auto& one) { return !present.contains(one.first); });
    state_.took = asked;
    first = !state_.complete;
  }
  rest(first ? nanoseconds{0} : rest_after(asked));
  look_around(names, first);
  if (stopping()) return;
  tell([](survey_state& s) {
    s.complete = true;
    s.trouble.clear();
  });
}

void survey::look_around(const std::vector<std::string>& names, bool first) {
  nanoseconds asked{};
  for (const auto& name : names) {
    if (stopping()) return;
    const auto began = steady_clock::now();
    listed_name one = look_at(session_, name);
    asked += steady_clock::now() - began;
    {
      const std::lock_guard guard{mutex_};
      if (is_shown(one, {}))
        found_[name] = std::move(one);
      else
        found_.erase(name);
    }
    if (asked < asking_slice) continue;
    tell([&](survey_state& s) { s.took += asked; });
    rest(first ? nanoseconds{0} : rest_after(asked));
    asked = {};
  }
  tell([&](survey_state& s) { s.took += asked; });
  rest(first ? nanoseconds{0} : rest_after(asked));
}

void survey::carry_out_orders() {
  for (;;) {
    std::function<std::string(const session&)> next;
    {
      const std::lock_guard guard{mutex_};
      if (orders_.empty()) return;
      next = std::move(orders_.front());
      orders_.pop_front();
    }
    std::string note;
    try {
      note = next(session_);
    } catch (const std::exception& e) {
      note = unsigned_message(e.what());
    }
    tell([&](survey_state& s) {
      s.note = std::move(note);
      ++s.notes;
    });
  }
}

void survey::rest(nanoseconds how_long) {
  const auto until = steady_clock::now() + how_long;
  for (;;) {
    carry_out_orders();
    std::unique_lock lock{mutex_};
    const auto wanted = [&] { return stopping_ || !orders_.empty(); };
    if (!wake_.wait_until(lock, until, wanted) || stopping_) return;
  }
}

}  // namespace holdfast::tool
