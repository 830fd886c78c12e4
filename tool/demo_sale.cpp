#include "tool/demo_sale.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <holdfast/holdfast.hpp>
#include <optional>
#include <vector>

#include "tool/demo_workers.hpp"
#include "tool/exit_code.hpp"
#include "tool/failure.hpp"

namespace holdfast::tool::demo {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto redraw_every = 100ms;
constexpr auto look_for_victims_every = 1ms;
/// More deaths than that are neither an accident nor done by hand.
constexpr std::size_t max_replacements = 200;

bool was_killed(int status) {
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
}

class sale {
 public:
  sale(const task& t, const catalogue& all, const sale_settings& settings, const progress& show)
      : settings_{settings},
        show_{show},
        board_{all.orders.size(), settings.workers},
        workers_{settings.workers, [&](std::size_t worker, int ready, int go) {
                   return work(t, all, board_, worker, ready, go);
                 }} {}

  void hold() {
    for (std::size_t i = 0; i < settings_.workers; ++i) workers_.start(i);
    for (std::size_t ready = 0; ready < settings_.workers;) ready += wait_a_moment(redraw_every);
    const auto begun = clock::now();
    workers_.go();
    while (workers_.any_left()) {
      const bool hunting = killed_while_buying_ < settings_.kills;
      wait_a_moment(hunting ? look_for_victims_every : redraw_every);
      if (hunting) hunt();
      show_(board_.finished());
    }
    if (!board_.all_finished()) {
      throw failure_exit{exit_code::own_failure, "the workers ended before all orders were done"};
    }
    took_ = board_.last_finish() - begun;
  }

  sale_result result() const {
    sale_result r;
    r.took = took_;
    r.orders = board_.orders();
    r.retries = board_.retries();
    r.killed = killed_;
    r.killed_while_buying = killed_while_buying_;
    std::vector<std::uint32_t> waits(board_.orders());
    for (std::size_t i = 0; i < waits.size(); ++i) waits[i] = board_.wait_us(i);
    std::sort(waits.begin(), waits.end());
    r.wait_p50 = std::chrono::microseconds{waits[waits.size() / 2]};
    r.wait_p99 = std::chrono::microseconds{waits[waits.size() * 99 / 100]};
    return r;
  }

 private:
  std::size_t wait_a_moment(std::chrono::milliseconds at_most) {
    const auto seen = workers_.next(at_most);
    if (seen.signal) throw stopped{*seen.signal};
    for (const auto& d : seen.deaths) bury(d);
    return seen.ready;
  }

  void bury(const workers::death& d) {
    if (victim_ == d.worker) victim_.reset();
    if (WIFEXITED(d.status) && WEXITSTATUS(d.status) == 0) return;
    if (!was_killed(d.status)) give_up(d);
    ++killed_;
    if (board_.desk_of(d.worker).now == phase::buying) ++killed_while_buying_;
    if (killed_ > max_replacements + settings_.kills) {
      throw failure_exit{exit_code::own_failure, "more than " + std::to_string(max_replacements) +
                                                     " workers were killed: giving up"};
    }
    board_.desk_of(d.worker).now = phase::idle;
    workers_.start(d.worker);
  }

  [[noreturn]] void give_up(const workers::death& d) const {
    const std::string who = "worker " + std::to_string(d.worker + 1);
    if (WIFSIGNALED(d.status)) {
      throw failure_exit{exit_code::own_failure,
                         who + " crashed with signal " + std::to_string(WTERMSIG(d.status))};
    }
    throw failure_exit{WEXITSTATUS(d.status), who + ": " + board_.desk_of(d.worker).problem};
  }

  /// Kills a worker in the middle of a purchase, evenly over the sale; one at a time, because a
  /// death counts only when it is seen.
  void hunt() {
    if (victim_) return;
    const auto due = (killed_while_buying_ + 1) * board_.orders() / (settings_.kills + 1);
    if (board_.finished() < due) return;
    for (std::size_t i = 0; i < settings_.workers; ++i) {
      if (board_.desk_of(i).now != phase::buying) continue;
      victim_ = i;
      return workers_.kill(i);
    }
  }

  const sale_settings& settings_;
  const progress& show_;
  board board_;
  workers workers_;
  std::chrono::nanoseconds took_{};
  std::size_t killed_ = 0;
  std::size_t killed_while_buying_ = 0;
  /// The killed worker whose death has not been seen yet.
  std::optional<std::size_t> victim_;
};

/// Opens the store and acquires a lock, as a worker will.
void use_store(const std::string& url) {
  const session s = open(url, {.lease = demo_lease});
  if (!s.can().several_processes) {
    throw failure_exit{exit_code::config,
                       "--store: " + s.url() +
                           " lives inside one process, and the workers are several; "
                           "use sqlite:PATH"};
  }
  mutex probe{s, "flash-sale:probe:" + std::to_string(getpid())};
  (void)probe.try_lock();
}

}  // namespace

double sale_result::orders_per_second() const {
  const std::chrono::duration<double> seconds = took;
  return seconds.count() > 0 ? static_cast<double>(orders) / seconds.count() : 0;
}

sale_result hold_sale(const task& t, const catalogue& all, const sale_settings& settings,
                      const progress& show) {
  create_shop(t.shop, all);
  sale s{t, all, settings, show};
  s.hold();
  sale_result r = s.result();
  r.how = t.how;
  r.books = open_shop(t.shop)->audit();
  return r;
}

void try_store(const std::string& url) {
  board notes{0, 1};
  workers one{1, [&](std::size_t, int, int) {
                try {
                  use_store(url);
                  return 0;
                } catch (const error& e) {
                  notes.give_up(0, e.what());
                  return exit_code::of(e.reason());
                } catch (const failure_exit& e) {
                  notes.give_up(0, e.what());
                  return e.code();
                } catch (const std::exception& e) {
                  notes.give_up(0, e.what());
                  return exit_code::own_failure;
                }
              }};
  one.start(0);
  while (one.any_left()) {
    const auto seen = one.next(redraw_every);
    if (seen.signal) throw stopped{*seen.signal};
    for (const auto& d : seen.deaths) {
      if (d.status != 0)
        throw failure_exit{exit_code::of_child(d.status), notes.desk_of(0).problem};
    }
  }
}

}  // namespace holdfast::tool::demo
