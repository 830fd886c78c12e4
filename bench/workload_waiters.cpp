#include <condition_variable>
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>
#include <mutex>
#include <thread>

#include "bench/workload.hpp"

// A thousand wait for one name while its holder keeps it: 250 in each of four processes, none with
// a thread of its own. Measures their cost at the server. With `mutex` the waiters of a process are
// in its local queue, and one of them is queued at the store; with `fair_mutex` all thousand are.
namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr unsigned processes = 4, waiters_each = 250;
constexpr const char* name = "bench:waiters";

/// Waits that were begun, and must end before the lock is destroyed.
class crowd {
 public:
  template <class Mutex>
  void join_line(Mutex& lock) {
    for (unsigned i = 0; i < waiters_each; ++i) {
      holdfast::async_acquire(lock, {}, stop_.get_token())
          .start([this](holdfast::result<holdfast::lease>) { one_ended(); });
    }
  }
  void leave() {
    stop_.request_stop();
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return ended_ == waiters_each; });
  }

 private:
  void one_ended() {
    const std::lock_guard guard{mutex_};
    if (++ended_ == waiters_each) changed_.notify_all();
  }
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned ended_ = 0;
};

/// The first process holds the lock, too, and sees when all are queued.
template <class Mutex>
void wait_in_line(shared_state& a, unsigned number, subject& s, unsigned in_line) {
  Mutex lock{*s.session(), name};
  crowd mine;
  holdfast::lease held;
  if (number == 0) held = lock.acquire(), a.held.set(1);
  a.held.wait_for(1);
  mine.join_line(lock);
  if (number == 0) {
    while (s.session()->show(name).waiters.size() < in_line) std::this_thread::yield();
    a.turn.set(1);
  }
  a.release.wait_for(1);
  mine.leave();
  if (number == 0) a.participants[0].acquired = a.inside[0] = processes * waiters_each;
}

// The holder's own process has its waiters in the local queue.
void wait_in_local_queues(shared_state& a, unsigned number, subject& s) {
  wait_in_line<holdfast::mutex>(a, number, s, processes - 1);
}
void wait_at_store(shared_state& a, unsigned number, subject& s) {
  wait_in_line<holdfast::fair_mutex>(a, number, s, processes * waiters_each);
}

// The cost of entering the queue is excluded. PostgreSQL counts it up to ten seconds later, where a
// connection is idle then.
void let_wait(const workers& all, shared_state& a, std::chrono::milliseconds) {
  all.await(a.turn, 1);
  all.let_pass(scheme_of(a.url) == "postgres" ? 11s : 1s);
  all.count(false);
  all.let_pass(5s);
  all.count(true);
  a.release.set(1);
  all.join();
}

outcome sum_up(const shared_state& a) {
  const double seconds = static_cast<double>(a.after[0].at - a.before[0].at) / 1e9;
  const auto told = a.after[0].server_statements - a.before[0].server_statements;
  outcome o;
  o.acquired = processes * waiters_each;
  o.store_ops_per_s = store_operations(a) / seconds;
  if (told > 0) o.statements_each = static_cast<double>(told) / seconds / o.acquired;
  return o;
}

// Slot stores have no queue, and do not show waiters.
bool shows_waiters(std::string_view url) {
  return !on_one_host(url) && scheme_of(url) != "memcached" && url.find("dialect=") == url.npos;
}
bool has_queue(std::string_view url) {
  return shows_waiters(url) && url.find("mode=session") == url.npos;
}

constexpr workload waiting(std::string_view called, std::string_view about,
                           bool (*only_ours_on)(std::string_view),
                           void (*sit)(shared_state&, unsigned, subject&)) {
  return {.name = called,
          .about = about,
          .processes = processes,
          .threads = processes,
          .own_process = true,
          .by = compared::cpu_percent,
          .host_baseline = "",
          .only_ours_on = only_ours_on,
          .once = true,
          .sit = sit,
          .conduct = let_wait,
          .sum_up = sum_up};
}

}  // namespace

const workload waiters =
    waiting("waiters-1000", "1,000 waiters in 4 processes: statements of the server", shows_waiters,
            wait_in_local_queues);
const workload waiters_fair =
    waiting("waiters-1000-fair", "the same with fair_mutex: all in line at the store", has_queue,
            wait_at_store);

}  // namespace bench
