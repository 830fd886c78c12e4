#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <holdfast/session.hpp>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tool/fd.hpp"
#include "tool/listed_name.hpp"

namespace holdfast::tool {

/// Of the time that passes, at most one part in so many goes into questions to the store.
inline constexpr int rest_for_work = 20;

/// How long to ask nothing after questions that took `asked`, so that the share is kept.
std::chrono::nanoseconds rest_after(std::chrono::nanoseconds asked) noexcept;

/// What is known of a store's names.
struct survey_state {
  std::vector<listed_name> names;   ///< in use, by name
  bool complete = false;            ///< every name has been looked at once
  std::chrono::nanoseconds took{};  ///< questions of the last round, without the rests
  std::string trouble;              ///< why nothing newer is known; empty if all is well
  std::string note;                 ///< what came of the last order()
  std::size_t notes = 0;            ///< how many there have been
};

/// Looks at all names of a store that match a pattern, round after round, on a thread of its own.
/// The first round goes on without a rest, as `list` does. In the others each few milliseconds of
/// questions are followed by a rest of rest_for_work - 1 times as long: the store's share of the
/// load is bounded, however many names there are, and what is shown gets older instead.
class survey {
 public:
  /// `changed` is rung after a round, after trouble and after an order.
  survey(session s, std::string pattern, std::chrono::nanoseconds interval, const bell& changed);
  survey(const survey&) = delete;
  survey& operator=(const survey&) = delete;
  /// Waits for the answer to the question that is under way.
  ~survey();

  survey_state state() const;
  /// Done between two questions, and its result is the note.
  void order(std::function<std::string(const session&)> what);

 private:
  void run();
  void round();
  void look_around(const std::vector<std::string>& names, bool first);
  void carry_out_orders();
  void rest(std::chrono::nanoseconds how_long);
  bool stopping() const;
  void tell(const std::function<void(survey_state&)>& change);

  const session session_;
  const std::string pattern_;
  const std::chrono::nanoseconds interval_;
  const bell& changed_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<std::function<std::string(const session&)>> orders_;
  std::map<std::string, listed_name> found_;
  survey_state state_;
  std::thread thread_;
};

}  // namespace holdfast::tool
