#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/metrics_text.hpp>
#include <holdfast/rate_limiter.hpp>
#include <holdfast/timed.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tool/exit_code.hpp"

/// The command line, checked and converted.
namespace holdfast::tool {

enum class color_when { automatic, always, never };
enum class log_format { text, json };

struct common_options {
  std::string store;  ///< empty: $HOLDFAST_STORE, otherwise the default
  bool json = false;
  bool verbose = false;
  log_format format = log_format::text;
  color_when color = color_when::automatic;
};

/// The kind of lock, and its mode.
enum class lock_mode {
  plain,   ///< holdfast::mutex
  write,   ///< -x: the exclusive mode of holdfast::shared_mutex
  read,    ///< -s: its shared mode
  permit,  ///< --slots: one permit of holdfast::semaphore
  leader,  ///< elect: holdfast::election
};

struct lock_choice {
  std::string name;
  lock_mode mode = lock_mode::plain;
  std::uint32_t slots = 1;
};

/// How run and hold acquire a lock.
struct take_options {
  lock_choice lock;
  bool fair = false;
  wait_time wait = no_limit;
  int busy_code = exit_code::busy;
  std::chrono::milliseconds ttl{30'000};
  std::string reason;
  std::int32_t priority = 0;  ///< elect only
};

/// What happens to the child when the lock is lost.
enum class on_lost {
  term,  ///< TERM early enough that KILL takes effect before the lease ends
  kill,  ///< KILL just before the lease ends
  warn,  ///< a message; the child continues
};

struct run_options {
  std::string typed = "run";  ///< the command that was typed: run, sem or elect
  take_options take;
  std::vector<std::string> command;  ///< never empty
  std::chrono::nanoseconds min_hold{0};
  std::chrono::nanoseconds max_run = std::chrono::nanoseconds::max();
  /// Empty: 5 s, but never more than a third of the lease.
  std::optional<std::chrono::nanoseconds> kill_after;
  tool::on_lost on_lost = tool::on_lost::term;
  int lost_code = exit_code::lost;
  std::string fence_file;
  std::string status_file;
  bool again = false;  ///< elect: campaign again after a loss
  std::string http;    ///< elect: the address that answers who leads; empty: none
};

struct hold_options {
  take_options take;
};

struct try_options {
  lock_choice lock;
  int busy_code = exit_code::busy;
};

/// The names that list and top show, and their order.
struct name_choice {
  std::string pattern = "*";
  bool held = false;     ///< only names that are held
  bool waiting = false;  ///< only names with waiters
  std::string sort = "name";
};

struct list_options {
  name_choice which;
  bool wide = false;
};

struct top_options {
  name_choice which;
  std::chrono::nanoseconds interval{1'000'000'000};
  bool once = false;
};

struct watch_options {
  std::string name;
  std::string until;  ///< one of until_words; empty: until the time is over, or a signal
  std::chrono::nanoseconds interval{200'000'000};
  wait_time wait = no_limit;
  int busy_code = exit_code::busy;
};

struct graph_options {
  std::string pattern = "*";
  bool dot = false;
};

struct completion_options {
  std::string what;       ///< one of completion_words
  std::string word;       ///< names: the beginning that is typed
  bool for_bash = false;  ///< with bash's quotes; otherwise unquoted
};

struct manual_options {
  std::string page;  ///< empty: the list of pages
};

struct show_options {
  std::string name;
};

struct force_unlock_options {
  std::string name;
  std::string owner;
  std::string reason;
  bool yes = false;
};

struct limit_options {
  std::string name;
  std::vector<rate_rule> rules;
  std::vector<std::string> rates;  ///< the rules, as they were typed
  std::string key;                 ///< the key of the bucket; empty: one bucket for all
  std::uint32_t tokens = 1;
  wait_time wait = one_try;
  bool peek = false;
  bool refund = false;
  bool reset = false;         ///< refill every bucket of the key
  std::uint32_t version = 0;  ///< of the rules: a greater one replaces them
  int busy_code = exit_code::busy;
};

/// latch and barrier.
struct meet_options {
  enum class action {
    arrive_and_wait,  ///< barrier
    wait,             ///< latch, by default
    count_down,       ///< latch --down
    peek,             ///< latch --peek
    remove,           ///< latch --remove
  };
  action what = action::wait;
  std::string name;
  std::uint32_t count = 1;
  std::uint32_t down = 1;
  wait_time wait = no_limit;
  std::chrono::milliseconds ttl{30'000};  ///< barrier only
  int busy_code = exit_code::busy;
};

struct serve_options {
  std::vector<std::string> stores;  ///< empty: the store of common_options
  std::string listen = "127.0.0.1:7440";
  std::vector<std::string> hosts;  ///< other names of this machine, for the requests' Host
  bool allow_unlock = false;
  std::string token_file;  ///< the file with the token for unlocking; empty: a new token
  double share = 0.01;     ///< the part of the time that queries of a store may take
};

struct ping_options {
  std::uint32_t count = 4;  ///< 0: until a signal
  std::chrono::nanoseconds interval{std::chrono::seconds(1)};
};

struct doctor_options {
  /// A waiter that has waited this long is stuck.
  std::chrono::nanoseconds stuck{std::chrono::minutes(5)};
};

/// metrics
struct scrape_options {
  metrics_format format = metrics_format::prometheus;
  std::string output;  ///< a file to be replaced; empty: stdout
};

struct version_options {};

struct command {
  common_options common;
  std::variant<run_options, hold_options, try_options, list_options, show_options,
               force_unlock_options, limit_options, meet_options, ping_options, doctor_options,
               scrape_options, serve_options, version_options, top_options, watch_options,
               graph_options, completion_options, manual_options>
      what;
};

}  // namespace holdfast::tool
