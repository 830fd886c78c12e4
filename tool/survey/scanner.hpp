#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/session.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tool/survey/board.hpp"
#include "tool/survey/pace.hpp"
#include "tool/survey/processor_wait.hpp"

namespace holdfast::tool {

/// Polls one store again and again, on a thread of its own, for all viewers together: lists the
/// names, then queries some of them. First come names that a viewer has opened, for half of the
/// time at most, then new names, and in turn names with waiters and all the others. It queries as
/// much as its share of the time allows. After a while without viewers it sleeps until there is
/// one. Of a store that cannot list its names, it queries those that viewers have opened.
class scanner {
 public:
  struct plan {
    double share = 0.01;
    /// Until every name was queried, at first and after a sleep.
    double first_share = 0.25;
    std::string pattern = "*";  ///< of the names
    /// From the end of one round over every name to the next one.
    std::chrono::nanoseconds interval = std::chrono::milliseconds(200);
    /// How long it continues after the last viewer.
    std::chrono::seconds lingers{60};
  };
  /// `open` is called on the scanner's thread, again and again while it throws holdfast::error.
  /// `tick` is called there when viewers may have something to see, once a second at least.
  scanner(board& onto, std::function<session()> open, std::function<void()> tick, plan how);
  scanner(const scanner&) = delete;
  scanner& operator=(const scanner&) = delete;
  ~scanner();

  /// A viewer is there. Thread-safe.
  void viewed();
  /// Calls `then` when the board is fresh, or the store is away: at once, unless the scanner slept
  /// or has just begun. `then` gets false if max_pending others, which are still wanted, wait. On
  /// the scanner's thread, or on this one. Thread-safe.
  void when_fresh(
      std::function<void(bool)> then, std::function<bool()> wanted = [] { return true; });
  /// Runs `job` with the store between two queries, then queries this name. The job gets null if
  /// there is no store, or if max_pending other jobs wait. Thread-safe.
  void perform(std::string lock, std::function<void(const session*)> job);

  static constexpr std::size_t max_pending = 64;

 private:
  struct job {
    std::string lock;
    std::function<void(const session*)> work;
  };
  void wake_up();
  void run(const std::stop_token& stop);
  void sleep_unless_viewed(const std::stop_token& stop);
  void rest(const std::stop_token& stop, boot_time until);
  void catch_up();
  void tell_fresh();
  bool work_once();
  void do_jobs();
  void connect();
  void list_names();
  std::vector<std::string> names_in_use(const session& s);
  void forget_ended(const std::vector<std::string>& listed);
  std::string next_fresh();
  void tell_listed();
  bool keep_listed(const listed_name& found, const std::string& name);
  bool look_at_some();
  bool look(const std::string& name);
  bool is_wanted(const std::string& name) const;
  std::optional<std::string> next_wanted();
  std::optional<std::string> next_in_turn();
  void round_is_done();
  using counted = void (pace::*)(boot_time from, boot_time to);
  bool ask(const std::function<void(const session&)>& question, counted as = &pace::spent);
  void away(std::string_view why);
  void report();

  board& board_;
  const std::function<session()> open_;
  const std::function<void()> tick_;
  const plan plan_;
  std::optional<session> session_;
  pace pace_;
  std::optional<processor_wait> own_;
  store_health health_;
  std::vector<std::string> names_;
  /// A name that was listed, and not queried yet.
  struct fresh_name {
    std::string name;
    std::chrono::system_clock::time_point absent_at;  ///< when a list last lacked it
  };
  std::deque<fresh_name> fresh_;
  std::size_t owed_ = 0;             ///< of fresh_: those that were there when the round began
  std::vector<std::string> queued_;  ///< names with waiters
  std::vector<std::string> wanted_;  ///< names that viewers have opened, sorted
  std::size_t next_wanted_ = 0;
  std::chrono::nanoseconds lead_{};  ///< query time of wanted names less the others'
  std::size_t next_name_ = 0;
  std::size_t next_queued_ = 0;
  bool queued_turn_ = false;
  bool fresh_turn_ = true;
  bool listed_ = false;  ///< at least once
  boot_time round_began_{};
  std::chrono::nanoseconds time_asked_{};  ///< spent on queries since then
  std::chrono::system_clock::time_point listed_at_{};
  boot_time try_again_{};

  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::vector<job> jobs_;
  struct fresh_waiter {
    std::function<void(bool)> then;
    std::function<bool()> wanted;
  };
  std::vector<fresh_waiter> fresh_waiters_;  ///< the oldest first
  bool catching_up_ = true;                  ///< until every name was queried
  bool slept_ = false;
  boot_time viewed_until_;
  std::jthread thread_;  // last: it uses everything above
};

}  // namespace holdfast::tool
